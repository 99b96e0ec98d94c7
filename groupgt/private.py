"""Keeps environment variable values, user names in URLs and the experiment's folder out of all output and files.

`hide(value)` is for errors, system options and file names, in which paths become relative. `hide.message(text)` is for
terminal messages, which keep their paths. `hide.sure(value)` is for everything else. Ids, queries and passages never
change.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from groupgt.errors import GroupgtError, GroupgtWarning, reason
from groupgt.records import record

# Values with fewer characters (`1`, `test`, `english`) are too common in texts to be replaced there.
FEWEST_CHARS = 8
# The user and password of a URL, unless they are references to the environment.
_USER = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]*://)(?!\$\{env:)[^\s\"'<>/?#@]+@")


@record
class Hide:
    """Hides `secrets`, a mapping from environment values to the text that replaces them, and `folder`.

    The value of the key that refers to a variable is always shown as written (see `Document.as_written`). In longer
    text, a value is replaced wherever it occurs if it has at least eight characters.
    """

    secrets: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    def __call__(self, value: Any) -> Any:
        """Return a value without secrets, user names in URLs or the experiment's folder."""
        return mapped(value, lambda text: self._relative(self.message(text)))

    def message(self, text: str) -> str:
        """Return a message without secrets or user names in URLs."""
        return _USER.sub(r"\1…@", self.sure(text))

    def sure(self, value: Any) -> Any:
        """Return a value without secrets."""
        pattern = self._pattern
        return value if pattern is None else mapped(value, lambda text: pattern.sub(self._reference, text))

    def _reference(self, match: re.Match[str]) -> str:
        return self.secrets[match[0]]

    def _relative(self, text: str) -> str:
        return text if self.folder is None else text.replace(f"{self.folder}{os.sep}", "")

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        texts = sorted((text for text in self.secrets if len(text) >= FEWEST_CHARS), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, texts))) if texts else None


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return a copy of a value in which every string is changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: mapped(getattr(value, field.name), change) for field in fields(value)})
    return value


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
        if why is None or hide.message(why) == why:
            raise
        if not isinstance(error, GroupgtError):
            raise GroupgtError(hide.message(why)) from None
        error.faults = tuple(map(hide.message, error.faults))
        error.args = (str(error),)
        raise error from None  # its cause may contain the same secrets
    finally:
        warnings.showwarning = show
