"""What must not leave the machine with a page: secrets, and where files lie.

Messages of errors, options of systems and names of files pass through `Hide` on their way to a page. Ids, questions
and passages do not: they are the data that the page is about.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

HIDDEN = "…"
_CREDENTIALS = re.compile(r"(?<=://)[^/\s@\"']+@")
_KEYS = r"(?<![A-Za-z])(?:password|passwd|pwd|secret|token|signature|api[-_]?key|authorization)"
# As in `?api_key=…` and `password=… host=…`, or as in `"Authorization": "…"`.
_ASSIGNED = re.compile(rf"({_KEYS}(?:=|[\"']\s*:\s*))(\"[^\"]*\"|'[^']*'|[^\s&\"',;]+)", re.IGNORECASE)
# Folders from the root on; a slash after a word, a digit or a colon belongs to something else.
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:/|[A-Za-z]:[\\/]+|\\\\)(?:[^\s\"'/\\:,;]+[\\/]+)+")
# A value of the environment that is shorter is hidden as a whole word alone.
_LONG = 8
_SHORTEST = 3


@dataclass(frozen=True)
class Hide:
    """Texts without secrets: values of the environment by what the file calls them, `secrets`, and what looks like one.

    Of absolute paths the last part stays.

    >>> Hide()("https://me:secret@host/a failed for /home/me/data/run.trec")
    'https://…@host/a failed for run.trec'
    >>> Hide({"abc-123": "${env:KEY}"})(["the key abc-123 was refused"])
    ['the key ${env:KEY} was refused']
    """

    secrets: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, value: Any) -> Any:
        """A value of texts, lists and dicts."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {key: self(held) for key, held in value.items()}
        return type(value)(self(held) for held in value) if isinstance(value, (list, tuple)) else value

    def _text(self, text: str) -> str:
        for pattern, shown in self._patterns:
            text = pattern.sub(lambda _, shown=shown: shown, text)  # type: ignore[misc]
        text = _CREDENTIALS.sub(f"{HIDDEN}@", text)
        text = _ASSIGNED.sub(rf"\1{HIDDEN}", text).replace("file://", "")
        for folder in _known_folders():
            text = text.replace(folder, "")
        return _FOLDERS.sub("", text)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        found = []
        for secret, shown in sorted(self.secrets.items(), key=lambda item: -len(item[0])):
            if len(secret) >= _SHORTEST:
                whole = re.escape(secret)
                found.append((re.compile(whole if len(secret) >= _LONG else rf"(?<!\w){whole}(?!\w)"), shown))
        return found


def _known_folders() -> list[str]:
    """Folders whose names may hold blanks, longest first."""
    known = set()
    for folder in (os.curdir, os.path.expanduser("~")):
        try:
            path = str(Path(folder).resolve())
        except (OSError, RuntimeError):  # the current folder was removed
            continue
        if path.count(os.sep) > 1:
            known.add(path + os.sep)
    return sorted(known, key=len, reverse=True)
