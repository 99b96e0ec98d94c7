"""Texts that tests compare whole: `snapshots/NAME.txt` beside `test_NAME.py`, rewritten by `python -m tests.update`.

A test asks for the fixture `snapshot` and calls it with what the product says: a sentence, a table, a list of messages.
A section of the file holds the text of one call. In place of a package for this: the files are plain text, and one
command rewrites them with everything else that is derived.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

MARK = "──── "
OPTION = "--write-snapshots"
# What is found while snapshots are written, and which tests there are.
found: dict[Path, dict[str, str]] = {}
collected: dict[Path, list[str]] = {}


def home(item: Path) -> Path:
    """Return the file with the snapshots of a test module."""
    return item.parent / "snapshots" / f"{item.stem.removeprefix('test_')}.txt"


@cache
def kept(path: Path) -> dict[str, str]:
    """Return the sections of a file."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = re.split(rf"^{MARK}(.*)\n", text, flags=re.MULTILINE)[1:]
    return {name: text[:-1] for name, text in zip(parts[::2], parts[1::2])}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="keep what is found as snapshots, and run only what has any")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption(OPTION):
        items[:] = [item for item in items if "snapshot" in getattr(item, "fixturenames", ())]
        for item in items:
            collected.setdefault(home(item.path), []).append(item.name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the sections found, keep those of tests that were skipped, and drop those of tests that are gone."""
    for path, names in collected.items():
        sections = kept(path) | found.get(path, {})
        order = {name: place for place, name in enumerate(names)}
        own = {key: text for key, text in sections.items() if _test(key) in order}
        own = {key: text for key, text in own.items() if key in found.get(path, {}) or not _ran(path, key)}
        text = "".join(f"{MARK}{key}\n{own[key]}\n" for key in sorted(own, key=lambda key: order[_test(key)]))
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def _test(key: str) -> str:
    """Return the test that a section belongs to; the second and later calls of a test have numbers."""
    return re.sub(r" #\d+$", "", key)


def _ran(path: Path, key: str) -> bool:
    return _test(key) in map(_test, found.get(path, {}))


class Snapshot:
    """Compare texts with what is kept for one test; its own folder is FOLDER, a result folder RUN."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._path, self._name, self._calls = home(request.path), request.node.name, 0
        self._writes, self._folder = request.config.getoption(OPTION), str(folder)

    def __call__(self, texts: str | Iterable[str]) -> None:
        """Compare a text, or texts a line each."""
        self._calls += 1
        key = self._name if self._calls == 1 else f"{self._name} #{self._calls}"
        text = texts if isinstance(texts, str) else "\n".join(texts)
        text = re.sub(r"\b\d{8}T\d{6}-[0-9a-f]{8}\b", "RUN", text.replace(self._folder, "FOLDER"))
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
        if self._writes:
            found.setdefault(self._path, {})[key] = text
        else:
            assert text == kept(self._path).get(key), "if this is meant: python -m tests.update"

    @contextmanager
    def raises(self, kind: type[BaseException] | tuple[type[BaseException], ...]) -> Iterator[Any]:
        """Compare what an error says."""
        with pytest.raises(kind) as error:
            yield error
        self(str(error.value))

    @contextmanager
    def warns(self, kind: type[Warning]) -> Iterator[Any]:
        """Compare what warnings say."""
        with pytest.warns(kind) as warned:
            yield warned
        self(str(each.message) for each in warned)


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, tmp_path: Path) -> Snapshot:
    """Return what compares texts with those that are kept."""
    return Snapshot(request, tmp_path)
