"""Removes secrets and the folders of this machine from all output.

`Hide` has three methods. Errors, options of systems and names of files may contain anything: `hide(value)` removes
everything secret from them, and the folders of files. Messages on a terminal keep their paths, because readers need
them: `hide.message(text)`. Everything else that is written or printed goes through `hide.sure(value)`. Ids, queries and
passages are not changed: they are the data.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from groupgt.errors import GroupgtError, GroupgtWarning, reason

HIDDEN = "…"
# The beginning of a reference to the environment, which is not a secret.
REFERENCE = "${env:"
# Names of keys whose values are secret; names in KEY too, as of variables, but not `id_key` or `sort_key`.
_KEYS = (
    r"(?:(?:[A-Z0-9]+_)+KEY|(?i:sig|[\w-]*(?:password|passwd|passphrase|pwd|secret|token|signature|credentials?|"
    r"(?:api|access|account|private|secret|auth|shared)[-_]?key|authorization)))"
)
_NAME = re.compile(_KEYS)
# `NAME_KEY=…`, `"Authorization": "…"`, and a line `x-api-key: …`, including a scheme such as `Bearer`.
_ASSIGNED = re.compile(
    rf"(?<![\w.-])({_KEYS}=|{_KEYS}[\"']\s*:\s*|(?i:(?:proxy-)?authorization|[\w-]*api-key):\s+)"
    r"(\"[^\"]*\"|'[^']*'|(?:(?i:bearer|basic|digest|token|apikey|negotiate)\s+)?[^\s&\"',;]+)"
)
_URL = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)([^\s\"'<>]+)")
_QUERY = re.compile(r"([?&;][^=&;#?]*=)(?!\$\{env:)[^&;#]+")
_REFERENCES = re.compile(r"(?:\$\{env:[^}]*\}|:)+")
# The name of a folder may contain blanks, but not at its ends: otherwise the text around a path would belong to it.
_FOLDER = r"(?:[^\s\"'<>|*?:;/\\]|(?<=\w)'(?=\w)|[ ](?=[^\s\"'<>|*?:;/\\]))+[\\/]+"
# Starts with a root, a drive or a share; a slash after a letter or a digit belongs to something else.
_FOLDERS = re.compile(rf"(?<![\w./\\}}~…])(?:/(?!/)|[A-Za-z]:[\\/]+|\\\\+)(?:{_FOLDER})+")
_LONG_CHARS, _SHORTEST_CHARS = 8, 3
# A longer value may be truncated; it is recognized by this many of its first characters.
_CUT_CHARS, _HEAD_CHARS = 60, 24


@dataclass(frozen=True)
class Hide:
    """Hides `secrets`: values of the environment, each with the text that replaces it.

    Whether a value is hidden depends on its place and on how likely it is a secret. A short value or a common word
    (`1`, `test`, `english`) occurs in texts for many reasons. So

    - the value of the key for which it was written is never shown, however short (see `Document.as_written`);
    - in errors and options, a value of at least eight characters is hidden everywhere, one of three to seven as a whole
      word, and a shorter one is not: a text with every `1` replaced would be unreadable, and no safer;
    - elsewhere, a value is hidden only if it can hardly occur by accident: at least eight characters, not all letters.

    Options and errors also lose everything that looks like a secret (keys, passwords, users and query values of URLs),
    and all but the last part of absolute paths.

    >>> Hide()("https://me:secret@host/a?k=1 failed for /home/me/my data/run.trec")
    'https://…@host/a?k=… failed for run.trec'
    >>> hide = Hide({"abc-123": "${env:KEY}", "1": "${env:ONE}", "c0rrect-horse": "${env:PASSWORD}"})
    >>> hide(["the key abc-123 was refused 1 time"])
    ['the key ${env:KEY} was refused 1 time']
    >>> hide.sure("abc-123, c0rrect-horse"), hide.message("/home/me/c0rrect-horse")
    ('abc-123, ${env:PASSWORD}', '/home/me/${env:PASSWORD}')
    """

    secrets: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        """Errors and options without secrets and folders."""
        return _mapped(value, lambda text: _without_folders(self.message(text)), by_name=True)

    def message(self, text: str) -> str:
        """An error without secrets, and without anything that looks like one."""
        text = self._any.sub(self._reference, text) if self._any else text
        text = _URL.sub(lambda match: match[1] + _bare_url(match[2]), text)
        return _ASSIGNED.sub(lambda match: match[1] + _hidden(match[2]), text)

    def sure(self, value: Any) -> Any:
        """Any value, without texts that can only be secrets."""
        pattern = self._sure
        return value if pattern is None else _mapped(value, lambda text: pattern.sub(self._reference, text))

    def _reference(self, match: re.Match[str]) -> str:
        """The reference of the file to a secret; a truncated secret is found by its first characters."""
        shown = self._spellings.get(match[0])
        return shown or next(
            reference for text, reference in self._spellings.items() if text.startswith(match[0][:_HEAD_CHARS])
        )

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """Each value unchanged, as spelled in Python, JSON and URLs, and as a resolved path; longest first."""
        spellings: dict[str, str] = {}
        for secret, shown in self.secrets.items():
            path = re.sub(r"^(?:\.{0,2}[\\/])+", "", secret)
            for text in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1], quote(secret, safe=""), path):
                if len(text) >= _SHORTEST_CHARS:
                    spellings.setdefault(text, shown)
        return dict(sorted(spellings.items(), key=lambda item: -len(item[0])))

    @cached_property
    def _any(self) -> re.Pattern[str] | None:
        return _pattern(self._spellings)

    @cached_property
    def _sure(self) -> re.Pattern[str] | None:
        return _pattern(text for text in self._spellings if len(text) >= _LONG_CHARS and not text.isalpha())


def _pattern(texts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for these texts: a short one as a word, and also the beginning of a long one that was truncated."""
    parts = []
    for text in texts:
        parts.append(re.escape(text) if len(text) >= _LONG_CHARS else rf"(?<!\w){re.escape(text)}(?!\w)")
        if len(text) > _CUT_CHARS:
            parts.append(rf"{re.escape(text[:_HEAD_CHARS])}[^\s…]*…")
    return re.compile("|".join(parts)) if parts else None


def _mapped(value: Any, change: Callable[[str], str], *, by_name: bool = False) -> Any:
    """A value with each of its texts changed; `by_name` hides the values of keys whose name indicates a secret."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        secret = {key for key in value if by_name and isinstance(key, str) and _NAME.fullmatch(key)}
        return {
            key: _hidden(item) if key in secret and isinstance(item, str) else _mapped(item, change, by_name=by_name)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, change, by_name=by_name) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _mapped(getattr(value, field.name), change) for field in fields(value)})
    return value


def _hidden(text: str) -> str:
    """The replacement of a secret, such as the reference in the file."""
    return text if REFERENCE in text or not text else HIDDEN


def _bare_url(rest: str) -> str:
    """The part of a URL after `://`, without user and password, and without the values of its query."""
    before_query = rest.partition("?")[0]
    authority = re.split("[/#]", before_query, maxsplit=1)[0]
    # A password with a slash in it: the part after the colon is not a port.
    is_split = re.match(r"[^/#@]*:(?!\d+(?:[/#]|$))", before_query) is not None
    end = before_query.rfind("@") if is_split else authority.rfind("@")
    if end < 0 and is_split:
        end = rest.rfind("@")
    if end >= 0 and not _REFERENCES.fullmatch(rest[:end]):
        rest = f"{HIDDEN}{rest[end:]}"
    return _QUERY.sub(rf"\1{HIDDEN}", rest)


def _without_folders(text: str) -> str:
    """A text in which absolute paths are reduced to their last part."""
    text = text.replace("file://", "")
    for folder in _private_folders():
        text = text.replace(folder, "")
    return _FOLDERS.sub("", text)


def _private_folders() -> list[str]:
    """Folders whose names may contain any character, longest first."""
    folders = set()
    for folder in (os.curdir, os.path.expanduser("~")):
        try:
            path = str(Path(folder).resolve())
        except (OSError, RuntimeError):  # the current folder was removed
            continue
        if path.count(os.sep) > 1:
            folders.add(path + os.sep)
    return sorted(folders, key=len, reverse=True)


@contextmanager
def private_messages(secrets: Mapping[str, str]) -> Iterator[None]:
    """Removes the values of `secrets` from errors and warnings that leave this context."""
    show = warnings.showwarning

    def show_private(message: Any, *rest: Any, **more: Any) -> None:
        if isinstance(message, GroupgtWarning):
            message = type(message)(Hide(secrets).message(str(message)))
        show(message, *rest, **more)

    warnings.showwarning = show_private
    try:
        yield
    except BaseException as error:
        hide, why = Hide(dict(secrets)), reason(error)
        if why is None or (hide.message(why) == why and not secrets):
            raise
        if not isinstance(error, GroupgtError):
            raise GroupgtError(hide.message(why)) from None
        error.faults = tuple(map(hide.message, error.faults))
        error.args = (str(error),)
        raise error from None  # its cause may contain the same secrets
    finally:
        warnings.showwarning = show
