"""Single values of a file, changed from the command line: `evaluate.k=[5]`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError
from groupgt.experiment.description.yamlfile import DEEPEST, Document, Path_, composed, plain_text

__all__ = ["change"]


def change(document: Document, setting: str) -> None:
    """Changes one value of a document; what follows the first `=` is YAML."""
    name, equals, text = setting.partition("=")
    place = f"--set {plain_text(name)}"
    parts = name.strip().split(".")
    if not equals or not all(parts) or len(parts) > DEEPEST:
        document.faults.add(f"--set {plain_text(setting[:200])}", "expected path.to.key=value")
        return
    path: Path_ = ()
    holder = document.value
    while parts:
        part, parts = _next(holder, parts)
        if not isinstance(holder, (dict, list)) or (isinstance(holder, list) and not _within(part, holder)):
            what = "expected a key of a mapping, or the position of a value in a list, from 0"
            where = f"there is nothing at {'.'.join(map(str, (*path, part)))}"
            document.faults.add(place, where if parts else what)
            return
        path = (*path, part)
        if not parts:
            break
        if isinstance(holder, dict) and part not in holder:
            holder[part] = {}
            document.places[path] = document.keys[path] = place
        elif isinstance(holder[part], str) and len(path) == 2 and path[0] == "systems":
            holder[part] = {"use": holder[part]}  # the short form
        holder = holder[part]
    for places in (document.places, document.keys, document.written):
        for each in [each for each in places if each[: len(path)] == path]:
            del places[each]
    document.partial -= {each for each in document.partial if each[: len(path)] == path}
    own = Document(Path(place), faults=document.faults)
    try:
        holder[path[-1]] = composed(text, own, path)
    except ConfigError as error:
        document.faults.merge(error)
        document.partial.add(path)
        return
    document.places |= dict.fromkeys([*own.places, path], place)
    document.keys |= dict.fromkeys([*own.keys, path], place)
    document.written |= own.written
    document.partial |= own.partial


def _next(holder: Any, parts: Sequence[str]) -> tuple[Any, list[str]]:
    """The next key, which may hold dots, or the position in a list; and what is left."""
    if isinstance(holder, list) and parts[0].isdecimal():
        return int(parts[0]), list(parts[1:])
    if isinstance(holder, dict):
        for length in range(len(parts), 1, -1):
            joined = ".".join(parts[:length])
            if joined in holder:
                return joined, list(parts[length:])
    return parts[0], list(parts[1:])


def _within(part: Any, holder: list[Any]) -> bool:
    return isinstance(part, int) and part < len(holder)
