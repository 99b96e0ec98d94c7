"""Reads YAML into a `Document`, with the location of each value and all errors, and applies changes from `--set`."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import yaml

from groupgt.errors import ConfigError, Faults, GroupgtError, listed, near_names
from groupgt.formats.source import neighbors
from groupgt.model.validity import shown
from groupgt.options import KeyPath, Short

LARGEST_BYTES = 1 << 20
DEEPEST = 40
# File endings of data files, and the message for a data file passed as an experiment.
DATA = (".jsonl", ".csv", ".tsv", ".parquet", ".pq", ".trec", ".run", ".qrels", ".gz", ".zst")
NO_EXPERIMENT = "this is a data file, not an experiment; `groupgt run` takes a YAML file, and `groupgt init` writes one"
# Errors of PyYAML and their explanations.
PROBLEMS = {
    "mapping values": "found ': ' within a value; put the text in quotes, or start a new line for the key",
    "expected <block end>": "expected a key (name: value) or a list item (- value) like those above it",
    "expected ',' or ']'": "expected a comma or ] : the list opened here is not closed",
    "expected ',' or '}'": "expected a comma or } : the mapping opened here is not closed",
    "found unexpected end of stream": "the quote opened here is not closed",
    "found character": "a value cannot begin with this character; put the text in quotes",
    "but found another document": "expected one document, found a second one after ---",
    "expected '<document start>'": "expected an experiment (keys with values), found something else",
}


LISTED = Short()
Texts = Annotated[list[str], LISTED]
# Keys below which any text is allowed, and keys that accept any text themselves.
FREE = {"with", "where", "slice", "stages"}
FREE_ENDS = (
    *("name", "ground_truth", "queries", "corpus", "audit", "answers", "file", "oracle", "fetch", "tokenizer"),
    *("version", "folder", "cache"),
)

# The tags of plain YAML by kind of node, which all begin with `tag:yaml.org,2002:`.
TAGS: dict[type[yaml.Node], set[str]] = {
    yaml.MappingNode: {"map"},
    yaml.SequenceNode: {"seq"},
    yaml.ScalarNode: {"str", "int", "float", "bool", "null", "timestamp", "merge", "value"},
}

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


@dataclass
class Document:
    """The values in a file, with the location (file:line:column) of each key path. `faults` collects errors.

    `written` has the original text of values that use environment variables, and `secrets` maps their values to that
    text. `partial` lists paths at which an invalid value was removed or replaced.
    """

    path: Path
    value: Any = None
    places: dict[KeyPath, str] = field(default_factory=dict)
    keys: dict[KeyPath, str] = field(default_factory=dict)
    written: dict[KeyPath, tuple[str, str]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    partial: set[KeyPath] = field(default_factory=set)
    faults: Faults = field(default_factory=Faults)
    # The path, location and text of each error.
    found: list[tuple[KeyPath, str, str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file are resolved against."""
        return self.path.parent

    def resolved(self, text: str) -> Path:
        """Make a path in the file absolute, or return it unchanged if that fails."""
        joined = os.path.join(self.folder, text)  # a Path would drop a trailing slash
        try:
            return Path(joined).resolve()
        except (OSError, ValueError, RuntimeError):
            return Path(joined)

    def require(self, path: KeyPath, text: str, dataset: str) -> None:
        """Add an error if the file named at a path does not exist for a data set."""
        if not exists(file := self.resolved(text.replace("{dataset}", dataset))):
            self.fault(path, f"file not found: {file}{neighbors(file)}")

    def place(self, path: KeyPath, *, key: bool = False) -> str:
        """Return the location of the value or key at a path, or of its nearest parent with a location."""
        places = {**self.places, **self.keys} if key else self.places
        while path and path not in places:
            path = path[:-1]
        return places.get(path, f"{self.path}:1:1")

    def fault(self, path: KeyPath, what: str, *, key: bool = False) -> None:
        """Add an error for the value or key at a path. Values of environment variables are hidden."""
        for filled_path, (raw, filled) in self.written.items():
            if filled_path[: len(path)] == path or path[: len(filled_path)] == filled_path:
                what = what.replace(repr(filled), repr(_with_defaults(raw)))
        dotted = ".".join(plain_text(str(part)) for part in path)
        self.add(path, self.place(path, key=key), f"{dotted}: {what}" if dotted else what)

    @contextmanager
    def faulting(self, path: KeyPath, before: str = "", after: str = "") -> Iterator[None]:
        """Add an error raised in the block at a path, then continue after the block."""
        try:
            yield
        except GroupgtError as error:
            self.fault(path, f"{before}{error}{after}")

    def add(self, path: KeyPath, place: str, what: str) -> None:
        """Add an error for a path, with its location."""
        self.found.append((path, place, what))
        self.faults.add(place, what)

    def drop(self, above: Collection[KeyPath]) -> None:
        """Drop the errors at or below any of the given paths, which have two keys each."""
        self.faults = Faults()
        for path, place, what in self.found:
            if path[:2] not in above:
                self.faults.add(place, what)

    def unknown(self, path: KeyPath, value: str, names: Collection[str], kind: str = "", also: str = "") -> None:
        """Add an error for an unknown name. `also` describes what else is accepted."""
        choices = [*[*names][:20], *([also] if also else [])]
        expected = f"{kind}{listed(choices)}{' …' if len(names) > 20 else ''}" if choices else "another name"
        self.fault(path, f"expected {expected}, found {value!r}{near_names(value, names)}")

    def is_sound(self, *path: str | int) -> bool:
        """Return True if there is no schema error at, above or below a path."""
        return not any(faulty[: len(path)] == path or path[: len(faulty)] == faulty for faulty in self.partial)

    def as_written(self, value: Any, path: KeyPath) -> Any:
        """Return a value as written in the file, with environment variables that may be secrets left unexpanded."""
        if isinstance(value, dict):
            return {key: self.as_written(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.as_written(item, (*path, position)) for position, item in enumerate(value)]
        lengths = range(len(path), 0, -1) if isinstance(value, str) and is_free(path) else ()
        return next((self.written[path[:length]][0] for length in lengths if path[:length] in self.written), value)

    def place_of(self, mark: Any) -> str:
        """Format the location of a PyYAML mark."""
        return f"{self.path}:{mark.line + 1}:{mark.column + 1}" if mark else str(self.path)

    def sort(self) -> None:
        """Sort the errors by line and column."""
        located = re.compile(re.escape(str(self.path)) + r":(\d+):(\d+)(?=:|$)")

        def order(text: str) -> tuple[int, ...]:
            place = located.match(text)
            return (int(place[1]), int(place[2])) if place else (0, 0)

        self.faults.order = order


def is_free(path: KeyPath) -> bool:
    """Return whether a path accepts any text. Other paths accept only names, which are never secret."""
    return not FREE.isdisjoint(path[:-1]) or bool(path and path[-1] in FREE_ENDS)


def exists(path: Path) -> bool:
    """Return whether a file or folder exists, or any file matches a pattern. An invalid path counts as missing."""
    try:
        return path.exists() or (glob.has_magic(str(path)) and next(glob.iglob(str(path)), None) is not None)
    except (OSError, ValueError):
        return False


def plain_text(text: str) -> str:
    """Return text that is safe to print in a terminal, with Python escapes where needed."""
    return text if text.isprintable() else ascii(text)


def as_yaml(value: Any) -> str:
    """Format a value as YAML, approximately."""
    if value is None or value in ({}, []):
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    return shown(value)


def read_yaml(path: Path, secrets: dict[str, str] | None = None) -> Document:
    """Read a single YAML 1.2 core document without aliases or tags, or raise `ConfigError` for invalid YAML.

    Only `true` and `false` are booleans, and `1e-3` is a number. `010`, `1:30` and dates stay text. `${env:X}` and
    `${env:X:-default}` are expanded.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"{path}: file not found{neighbors(path)}") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(raw) > LARGEST_BYTES:
        raise ConfigError(f"{path}: expected at most {LARGEST_BYTES:,} bytes, found {len(raw):,}")
    if path.suffix.lower() in DATA or raw[:4] in (b"PAR1", b"\x28\xb5\x2f\xfd") or raw[:2] == b"\x1f\x8b":
        raise ConfigError(f"{path}: {NO_EXPERIMENT}")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ConfigError(f"{path}:1:1: expected UTF-8, found UTF-16; save the file as UTF-8")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start) + 1, error.start - raw.rfind(b"\n", 0, error.start)
        raise ConfigError(f"{path}:{line}:{column}: expected UTF-8, found the byte 0x{raw[error.start]:02x}") from None
    document = Document(path, secrets={} if secrets is None else secrets)
    document.value = composed(text, document, ())
    if not document.places:
        raise ConfigError(f"{path}:1:1: the file is empty; `groupgt init` writes a starter")
    return document


def composed(text: str, document: Document, path: KeyPath) -> Any:
    """Parse YAML text into the values at a path of the document, or raise `ConfigError` for invalid YAML."""
    try:
        node = _Loader(text, document).get_single_node()
        document.faults.stop(ConfigError)
    except yaml.MarkedYAMLError as error:
        place = document.place_of(error.problem_mark or error.context_mark)
        raise ConfigError(f"{place}: {_meaning_of(error, text)}") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = f"{document.path}:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        raise ConfigError(f"{place}: expected text, found the control character {text[error.position]!r}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{document.path}: not YAML: {str(error).splitlines()[0]}") from None
    return None if node is None else _build(node, path, document)


def _meaning_of(error: yaml.MarkedYAMLError, text: str) -> str:
    """Explain a YAML error in terms of the file, not the parser."""
    problem, mark = error.problem or error.context or "", error.problem_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    indent = _indent(line)
    if "\t" in line[: indent + 1]:
        return "found a tab; indent with spaces"
    if mark is not None and problem.startswith(("expected <block end>", "mapping values")):
        number = mark.line
        above = next((place for place in range(number - 1, -1, -1) if _counts(lines[place])), None)
        before = indent if above is None else _indent(lines[above])
        after = next((_indent(below) for below in lines[number + 1 :] if _counts(below)), before)
        opens = above is not None and lines[above].rstrip().endswith(":") and indent > before
        if indent != before and not opens and mark.column >= indent:
            around = "lines around it" if after == before else "line before it"
            return f"line {number + 1} is indented by {indent}, the {around} by {before}; check the indentation"
        if above is not None and ":" not in lines[above] and problem.startswith("mapping values"):
            return f"line {above + 1} has no colon after its key"
    if error.context_mark is not None and problem.startswith("could not find expected ':'"):
        return f"line {error.context_mark.line + 1} has no colon after its key"
    meaning = next((text for begin, text in PROBLEMS.items() if problem.startswith(begin)), f"not YAML: {problem}")
    opened = error.context_mark
    if opened is not None and mark is not None and opened.line < mark.line and "not closed" in meaning:
        meaning += f" (line {opened.line + 1})"
    return meaning


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _counts(line: str) -> bool:
    """Return whether a line is neither blank nor a comment."""
    return bool(line.strip()) and not line.lstrip().startswith("#")


class _Loader(yaml.SafeLoader):
    """Composes nodes, and rejects aliases and deep nesting before anything is expanded."""

    def __init__(self, text: str, document: Document) -> None:
        super().__init__(text)
        self.document, self.depth = document, 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # of PyYAML
        place = self.document.place_of(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            self.document.faults.add(place, f"aliases (*{event.anchor}) are not supported; write the value out")
            self.get_event()  # type: ignore[no-untyped-call]  # of PyYAML
            return yaml.ScalarNode("", "")  # never read
        if event.anchor:
            self.document.faults.add(place, f"anchors (&{event.anchor}) are not supported; remove this one")
            event.anchor = None  # a second one of this name would end the parsing
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        if is_collection and self.depth == DEEPEST:
            raise ConfigError(f"{place}: expected at most {DEEPEST} levels of nesting")
        self.depth += is_collection
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= is_collection
        return node


def _build(node: yaml.Node, path: KeyPath, document: Document) -> Any:
    document.places[path] = document.place_of(node.start_mark)
    is_plain = node.tag.removeprefix("tag:yaml.org,2002:") in TAGS[type(node)]
    if not is_plain:
        document.fault(path, f"expected plain YAML, found the tag {node.tag}")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, document)
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*path, position), document) for position, child in enumerate(node.value)]
    return _scalar(node, path, document) if is_plain else None


def _mapping(node: yaml.MappingNode, path: KeyPath, document: Document) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = document.place_of(key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            document.add(path, place, "expected a key, found a list or mapping")
            continue
        key = str(key_node.value)
        inner = (*path, key)
        if key in out:
            first = document.keys[inner]
            document.keys[inner] = place
            document.fault(inner, f"duplicate key (first at {first.removeprefix(f'{document.path}:')})", key=True)
            document.keys[inner] = first
            continue
        document.keys[inner] = place
        out[key] = _build(value_node, inner, document)
    return out


def _scalar(node: yaml.Node, path: KeyPath, document: Document) -> Any:
    text = str(node.value)
    if node.style is None:  # type: ignore[attr-defined]  # scalar nodes have a style
        if text in ("", "~", "null", "Null", "NULL"):
            return None
        if text in ("true", "false"):
            return text == "true"
        if _INTEGER.fullmatch(text) or _FLOAT.fullmatch(text):
            return int(text) if _INTEGER.fullmatch(text) and len(text) < 100 else float(text)
    return _filled(text, path, document)


def _with_defaults(text: str) -> str:
    """Replace unset environment variables with their defaults, which are not secret, and leave others unexpanded."""
    return _VARIABLE.sub(lambda match: match[0] if match[2] is None or match[1] in os.environ else match[2], text)


def _filled(text: str, path: KeyPath, document: Document) -> str:
    def value(match: re.Match[str]) -> str:
        name, default = match[1], match[2]
        filled_in = os.environ.get(name, default)
        if name in os.environ and is_free(path):
            document.secrets[os.environ[name]] = f"${{env:{name}}}"
        if filled_in is None:
            what = f"the environment variable {name} is not set; set it, or write ${{env:{name}:-default}}"
            document.fault(path, what)
            document.partial.add(path)
            return ""
        return filled_in

    filled = _VARIABLE.sub(value, text)
    if filled != text:
        document.written[path] = (text, filled)
    return filled


def change(document: Document, setting: str) -> None:
    """Change one value in a document. The text after the first `=` is parsed as YAML."""
    name, equals, text = setting.partition("=")
    place = f"--set {plain_text(name)}"
    parts = name.strip().split(".")
    if not equals or not all(parts) or len(parts) > DEEPEST:
        document.faults.add(f"--set {plain_text(setting[:200])}", "expected path.to.key=value")
        return
    path: KeyPath = ()
    holder = document.value
    while parts:
        part, parts = _next(holder, parts)
        is_place = isinstance(holder, list) and isinstance(part, int) and part < len(holder)
        if not isinstance(holder, dict) and not is_place:
            what = "expected a key of a mapping, or a position in a list, counting from 0"
            where = f"nothing is set at {'.'.join(map(str, (*path, part)))}"
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
        for replaced in [other for other in places if other[: len(path)] == path]:
            del places[replaced]
    document.partial -= {faulty for faulty in document.partial if faulty[: len(path)] == path}
    setting_document = replace(document, path=Path(place), places={}, keys={})
    try:
        holder[path[-1]] = composed(text, setting_document, path)
    except ConfigError as error:
        document.faults.merge(error)
        document.partial.add(path)
        return
    document.places |= dict.fromkeys([*setting_document.places, path], place)
    document.keys |= dict.fromkeys([*setting_document.keys, path], place)


def _next(holder: Any, parts: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the next key (which may contain dots) or list index, and the remaining parts."""
    if isinstance(holder, list) and parts[0].isdecimal():
        return int(parts[0]), list(parts[1:])
    if isinstance(holder, dict):
        for length in range(len(parts), 1, -1):
            joined = ".".join(parts[:length])
            if joined in holder:
                return joined, list(parts[length:])
    return parts[0], list(parts[1:])
