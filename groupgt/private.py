"""Removes secrets and local folders from all output.

`Hide` has three methods. `hide(value)` is for errors, system options and file names, which may contain anything: it
removes all secrets and folders. `hide.message(text)` is for terminal messages, which keep their paths because readers
need them. `hide.sure(value)` is for everything else that is written or printed. Ids, queries and passages are data and
never change.
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
    """Hides `secrets`, a mapping from environment values to the text that replaces them.

    Whether a value is hidden depends on its context and on how likely it is to be secret, because short values and
    common words (`1`, `test`, `english`) occur in texts for many reasons:

    - the value of the key that refers to a secret is never shown, however short (see `Document.as_written`);
    - in errors and options, values of at least eight characters are always hidden, values of three to seven characters
      only as full words, and shorter ones never: replacing every `1` would make a text unreadable, but no safer;
    - elsewhere, a value is hidden only if it is unlikely to occur by accident: at least eight characters, not all
      letters.

    Options and errors also lose everything that looks like a secret (keys, passwords, URL users and query values), and
    all but the last part of absolute paths.

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
        """Remove secrets and folders from errors and options."""
        return _mapped(value, lambda text: _without_folders(self.message(text)), by_name=True)

    def message(self, text: str) -> str:
        """Remove secrets, and anything that looks like a secret, from an error message."""
        text = self._any.sub(self._reference, text) if self._any else text
        text = _URL.sub(lambda match: match[1] + _bare_url(match[2]), text)
        return _ASSIGNED.sub(lambda match: match[1] + _hidden(match[2]), text)

    def sure(self, value: Any) -> Any:
        """Remove only texts that are certain to be secrets, from any value."""
        pattern = self._sure
        return value if pattern is None else _mapped(value, lambda text: pattern.sub(self._reference, text))

    def _reference(self, match: re.Match[str]) -> str:
        """Return the config reference for a secret; a truncated secret is recognized by its first characters."""
        shown = self._spellings.get(match[0])
        return shown or next(
            reference for text, reference in self._spellings.items() if text.startswith(match[0][:_HEAD_CHARS])
        )

    @cached_property
    def _spellings(self) -> dict[str, str]:
        """All spellings of each secret: unchanged, in Python, JSON and URLs, and as a resolved path; longest first."""
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
    """Return a pattern that matches short texts as words, and long texts even if they are truncated."""
    parts = []
    for text in texts:
        parts.append(re.escape(text) if len(text) >= _LONG_CHARS else rf"(?<!\w){re.escape(text)}(?!\w)")
        if len(text) > _CUT_CHARS:
            parts.append(rf"{re.escape(text[:_HEAD_CHARS])}[^\s…]*…")
    return re.compile("|".join(parts)) if parts else None


def _mapped(value: Any, change: Callable[[str], str], *, by_name: bool = False) -> Any:
    """Change every text in a value; `by_name` also hides values whose key indicates a secret."""
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
    """Return the replacement for a secret; text with a config reference stays unchanged."""
    return text if REFERENCE in text or not text else HIDDEN


def _bare_url(rest: str) -> str:
    """Remove user, password and query values from a URL; `rest` is the part after `://`."""
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
    """Reduce absolute paths in a text to their last part."""
    text = text.replace("file://", "")
    for folder in _private_folders():
        text = text.replace(folder, "")
    return _FOLDERS.sub("", text)


def _private_folders() -> list[str]:
    """Return folders whose names may contain any character, longest first."""
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
    """Remove the values in `secrets` from errors and warnings that leave this context."""
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
