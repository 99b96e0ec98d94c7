"""Reads options from a mapping (YAML, `--with` or Python) into a dataclass, and reports every error.

The annotations of the dataclass define the valid values of each option, for example `Annotated[float, Gt(0), Le(1)]`,
`Literal["chars", "pages"]`, a `File` or a `Rule`. A `Doc` holds the description. The `clashes` method yields errors
that annotations cannot express.
"""

from __future__ import annotations

import math
import operator
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from groupgt.errors import ConfigError, GroupgtError, display, listed, near_names, refuse
from groupgt.plugins import Plugin, plugin_named
from groupgt.records import record

KeyPath = tuple[str | int, ...]
N = TypeVar("N")
# Annotations: the text names a file; the text may name a folder.
FILE, FOLDER = object(), object()
# The text that describes an option: an annotation.
Doc = NamedTuple("Doc", [("documentation", str)])  # noqa: UP014
# The smallest valid number, for options of every command: `annotated_types` is slow to import.
Minimum = NamedTuple("Minimum", [("ge", int)])  # noqa: UP014
# A path that is relative to the experiment file, with `{dataset}` filled in.
File = Annotated[str, FILE]
# A folder next to the experiment file, if there is one; otherwise a name.
Folder = Annotated[str, FOLDER]
LEFT_OUT = object()
OPTIONS: dict[Any, dict[str, Option]] = {}
# The names of types in messages and JSON Schemas.
TYPES = {
    bool: ("true or false", "boolean"),
    int: ("a whole number", "integer"),
    float: ("a number", "number"),
    str: ("text", "string"),
    list: ("a list", "array"),
    dict: ("a mapping", "object"),
}

# The bounds of a range: the keyword in JSON Schema, the words, and the comparison of a number with the bound.
BOUNDS: dict[str, tuple[str, str, Callable[[float, float], bool]]] = {
    "ge": ("minimum", "of at least", operator.ge),
    "gt": ("exclusiveMinimum", "above", operator.gt),
    "le": ("maximum", "of at most", operator.le),
    "lt": ("exclusiveMaximum", "below", operator.lt),
}


class Clash(NamedTuple):
    """An error in an option. A clash is reported only if the option and all options in `beside` are otherwise valid."""

    option: str
    what: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """Annotation for valid values, with a description, a test, a JSON Schema and, for other types, a conversion."""

    expected: str
    test: Callable[[Any], object]
    schema: Mapping[str, Any] = field(default_factory=dict)
    convert: Callable[[Any], Any] | None = None


# A value of a column; one type, so that an error has one location.
_SCALAR = Rule(
    "text, a number, true or false",
    lambda value: isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)),
    {"type": ["string", "number", "boolean"]},
)
Scalar = Annotated[Any, _SCALAR]


@dataclass(frozen=True)
class Short:
    """Annotation that allows a single value instead of a list, or (with `key`) a `kind` instead of a mapping."""

    key: str = ""
    kind: type = str

    def widened(self, value: Any) -> Any:
        """Return the long form."""
        if not self.key:
            return value if isinstance(value, list) or value is None else [value]
        return {self.key: value} if type(value) is self.kind else value


@dataclass(frozen=True)
class Default:
    """Annotation with the default of an option in a `TypedDict`, whose fields cannot have defaults."""

    default: Any


@dataclass(frozen=True)
class Called:
    """Annotation with the word that messages use for a number, such as `seconds`."""

    noun: str


@record
class Fault:
    """An invalid value, or a key problem (`unknown`, `missing` or `invalid_key`), with its path."""

    path: KeyPath
    what: str
    kind: Literal["value", "unknown", "missing", "invalid_key"] = "value"

    @property
    def option(self) -> str:
        """Option name."""
        return str(self.path[0])

    @property
    def is_of_key(self) -> bool:
        """True if the error is in the key, not in the value."""
        return self.kind in ("unknown", "invalid_key")


def chosen(kind: str, spec: Any, *, texts: bool = False, also: str = "") -> tuple[Plugin, Any]:
    """Return a plug-in and its options from a name or `{"use": name, "with": {option: value}}`.

    With `texts`, parse numbers and booleans from text, as in a shell. `also` describes other accepted forms.
    """
    if isinstance(spec, str):
        spec = {"use": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("use"), str) or set(spec) - {"use", "with"}:
        *forms, last = ["a name", '{"use": name, "with": {…}}', *([also] if also else [])]
        raise ConfigError(f"{kind}: expected {', '.join(forms)}, or {last}, found {display(spec)}")
    plugin = plugin_named(kind, spec["use"])
    values = spec.get("with") or {}
    if not isinstance(values, Mapping):
        raise ConfigError(f"{kind} with: expected options by name, found {display(values)}")
    return plugin, options_from(plugin.options, values, f"{kind} {plugin.name}: ", texts=texts)


def options_from(kind: type[Any] | None, values: Mapping[str, Any], where: str = "", *, texts: bool = False) -> Any:
    """Read options from a mapping. Raise a `ConfigError` that lists every error, each prefixed with `where`."""
    options, faults = read_options(kind, values, texts=texts)
    _stop(faults, where)
    return options


def _stop(faults: Iterable[Fault], where: str) -> None:
    refuse(((f"{where}{'.'.join(map(str, fault.path))}", fault.what) for fault in faults), ConfigError)


def read_options(
    kind: type[Any] | None, values: Mapping[str, Any], *, texts: bool = False, show: Callable[[Any], str] = display
) -> tuple[Any, list[Fault]]:
    """Read options (`texts`: as in a shell). Return the options (None if any are invalid) and all errors."""
    options = options_of(kind)
    if texts:
        hints = {key: option.hint for key, option in options.items()}
        values = {key: _from_text(value, hints.get(key)) for key, value in values.items()}
    reader = Reader(show)
    valid = reader.fields(options, values, (), "option")
    result, faults = None, reader.faults
    if kind is not None and all(name in valid for name, option in options.items() if option.needed):
        result, clashes = _built(kind, valid)
        invalid = {fault.option for fault in faults}
        faults += [Fault((option,), what) for option, what, beside in clashes if invalid.isdisjoint((option, *beside))]
    order = {str(key): position for position, key in enumerate(values)}
    faults.sort(key=lambda fault: order.get(fault.option, len(order)))
    return (None if faults else result), faults


def read_section(
    kind: type[Any], value: Any, show: Callable[[Any], str], empty: Mapping[str, Any] | None = None
) -> tuple[Any, list[Fault]]:
    """Read a dataclass without its invalid values, and return all errors. `empty` fills missing required keys."""
    reader = Reader(show, in_file=True)
    section = reader.section(kind, value, (), empty or {}) if isinstance(value, dict) else reader.value(kind, value, ())
    return (None if section is LEFT_OUT else section), reader.faults


def check_options(options: Any, where: str = "") -> dict[str, Any]:
    """Check and convert the values of options created in Python, except for defaults, or raise `ConfigError`."""
    reader = Reader(display)
    values = {}
    for option in options_of(type(options)).values():
        value = values[option.name] = getattr(options, option.name)
        if option.needed or type(value) is not type(option.default) or value != option.default:
            values[option.name] = reader.value(option.hint, value, (option.name,))
    _stop(reader.faults, where)
    return values


def check_ranges(declared: Any, values: Mapping[str, Any]) -> None:
    """Raise a `ConfigError` that lists every number outside the range that its declaration states."""
    reader = Reader(display)
    for name, option in options_of(declared).items():
        if name in values and limits(option.hint):
            reader.value(option.hint, values[name], (name,))
    _stop(reader.faults, "")


def _from_text(value: Any, hint: Any) -> Any:
    plain = plain_type(hint) if isinstance(value, str) else None
    if plain is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    if plain in (int, float) and "_" not in value:
        with suppress(ValueError):
            return plain(value)
    return value


def _built(kind: type[Any], values: Mapping[str, Any]) -> tuple[Any, list[Clash]]:
    """Build the dataclass and return it with its clashes. The constructor may also raise errors, as `key: what`."""
    try:
        options = kind(**values)
    except GroupgtError as error:
        parts = [text.partition(": ") for text in error.faults]
        return None, [Clash(option, what) for option, _, what in parts]
    return options, list(options.clashes()) if hasattr(options, "clashes") else []


class Reader:
    """Reads values strictly by their annotations, collects all errors and leaves out invalid values."""

    def __init__(self, show: Callable[[Any], str], *, in_file: bool = False) -> None:
        self.show, self.in_file = show, in_file
        self.faults: list[Fault] = []

    def value(self, hint: Any, value: Any, path: KeyPath, kind: Literal["value", "invalid_key"] = "value") -> Any:
        """Check a value and convert it to its type."""
        plain, notes = unwrapped(hint)
        if value is None and None in notes:
            return None
        if (short := note_in(notes, Short)) is not None:
            value = short.widened(value)
        rule = note_in(notes, Rule)
        expected = self._expected(hint, plain, rule, value)
        if not expected and not value and any(hasattr(note, "min_length") for note in notes):
            expected = "at least one"
        if expected:
            suggestions = near_names(value, choices(hint)) if isinstance(value, str) else ""
            self.faults.append(Fault(path, f"expected {expected}, found {self.show(value)}{suggestions}", kind))
            return LEFT_OUT
        if rule is not None and rule.convert is not None:
            return rule.convert(value)
        return self._contents(plain, value, path)

    def _expected(self, hint: Any, plain: Any, rule: Rule | None, value: Any) -> str:
        """Describe the expected value, or return an empty string if the value is valid."""
        if valid := choices(hint):
            return "" if any(isinstance(value, type(choice)) and value == choice for choice in valid) else words(hint)
        if (rule is None or rule.convert is None) and not _is_of(plain, value):
            return words(hint, narrow=False)
        if rule is not None and not rule.test(value):
            return rule.expected
        broken = [name for name, bound in limits(hint).items() if not BOUNDS[name][2](value, bound)]
        if broken and self.in_file:
            return f"a number {BOUNDS[broken[0]][1]} {_bounds(hint)[broken[0]]}"
        return words(hint) if broken else ""

    def _contents(self, plain: Any, value: Any, path: KeyPath) -> Any:
        """Read all contents of a value that already has the right type."""
        kind, arguments = get_origin(plain) or plain, get_args(plain)
        if kind is float:
            return float(value)
        if kind is list and arguments:
            items = [self.value(arguments[0], item, (*path, position)) for position, item in enumerate(value)]
            return [item for item in items if item is not LEFT_OUT]
        if kind is dict and arguments:
            names = [self.value(arguments[0], key, (*path, key), "invalid_key") for key in value]
            items = [self.value(arguments[1], item, (*path, key)) for key, item in value.items()]
            return {name: item for name, item in zip(names, items) if LEFT_OUT not in (name, item)}
        return self.section(plain, value, path, {}) if is_dataclass(kind) and not isinstance(value, plain) else value

    def section(self, kind: Any, value: Mapping[str, Any], path: KeyPath, empty: Mapping[str, Any]) -> Any:
        """Read a dataclass from a mapping. `empty` fills required keys that are missing."""
        options = options_of(kind)
        values = {**empty, **self.fields(options, value, path, "key")}
        is_whole = all(option.name in values for option in options.values() if option.needed)
        return kind(**values) if is_whole else LEFT_OUT

    def fields(self, options: Mapping[str, Option], values: Any, path: KeyPath, noun: str) -> dict[str, Any]:
        """Return the valid fields of a dataclass. Messages call a field `noun`."""
        for key in values:
            if key not in options:
                name = f" {str(key)!r}" if noun == "option" else ""
                names = f"known {noun}s: {', '.join(options)}" if options else f"there are no {noun}s"
                what = f"unknown {noun}{name}; {names}{near_names(str(key), list(options))}"
                self.faults.append(Fault((*path, str(key)), what, "unknown"))
        valid = {}
        for key, option in options.items():
            if key in values:
                value = self.value(option.hint, values[key], (*path, key))
                if value is not LEFT_OUT:
                    valid[option.name] = value
            elif option.needed:
                hint = f"; add `{key}: {option.expected}`" if option.expected.isdecimal() else ""  # the only value
                self.faults.append(Fault((*path, key), f"required key is missing{hint}", "missing"))
        return valid


def _is_of(plain: Any, value: Any) -> bool:
    """Check strictly whether a value is of a type: true is not 1, 1.0 is no integer, and nan and inf are invalid."""
    kind = get_origin(plain) or plain
    if plain is Any:
        return True
    if kind in (Union, types.UnionType):
        return any(_is_of(plain_type(member), value) for member in get_args(plain))
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if is_dataclass(kind):
        return isinstance(value, (dict, plain))
    return isinstance(value, kind) if isinstance(kind, type) else True


def as_dict(value: Any) -> Any:
    """Convert a dataclass and all its contents to plain data, using the option keys of its fields."""
    if is_dataclass(value):
        return {key: as_dict(getattr(value, option.name)) for key, option in options_of(type(value)).items()}
    if isinstance(value, dict):
        return {key: as_dict(item) for key, item in value.items()}
    return [as_dict(item) for item in value] if isinstance(value, list) else value


def paths_of(kind: type[Any] | None, values: Mapping[str, Any]) -> list[str]:
    """Return the options that name files."""
    paths = (name for name, option in options_of(kind).items() if option.is_path)
    return [name for name in paths if isinstance(values.get(name), str) and values[name]]


@dataclass(frozen=True, repr=False)
class Option:
    """An option, with its type (`hint`), annotations (`notes`), any default, and the default as `written` in help."""

    name: str
    hint: Any
    default: Any
    needed: bool = False
    written: str = ""
    description: str = ""
    notes: tuple[Any, ...] = ()

    @property
    def is_path(self) -> bool:
        """True if the option names a file relative to the experiment file, with `{dataset}` filled in."""
        return FILE in self.notes

    @property
    def is_folder(self) -> bool:
        """True if the option may name a folder."""
        return FOLDER in self.notes

    @property
    def expected(self) -> str:
        """Description of the valid values."""
        return words(self.hint)


def options_of(kind: type[Any] | None) -> dict[str, Option]:
    """Return the options of a dataclass or `TypedDict` by key, which is the field name (`with` for `with_`)."""
    if kind is None:
        return {}
    if kind in OPTIONS:
        return OPTIONS[kind]
    hints = get_type_hints(kind, include_extras=True)
    written = {made.name: made for made in fields(kind)} if is_dataclass(kind) else {}
    options = OPTIONS[kind] = {}
    for name in written or hints:
        notes, made = unwrapped(hints[name])[1], written.get(name)
        factory = MISSING if made is None else made.default_factory
        default = factory() if factory is not MISSING else getattr(made or note_in(notes, Default), "default", MISSING)
        written_as = "" if made is None else made.metadata.get("written", "")
        needed, value = default is MISSING, None if default is MISSING else default
        options[name.rstrip("_")] = Option(
            name, hints[name], value, needed, written=written_as, description=documented(hints[name]), notes=notes
        )
    return options


def documented(hint: Any) -> str:
    """Return the text of an annotation's `Doc`, or an empty string."""
    note = note_in(unwrapped(hint)[1], Doc)
    return "" if note is None else note.documentation


def words(hint: Any, *, narrow: bool = True) -> str:
    """Describe the values that an annotation allows. Unless `narrow` is set, describe only the type."""
    plain, notes = unwrapped(hint)
    rule, called = note_in(notes, Rule), note_in(notes, Called)
    if rule is not None and (narrow or rule.convert is not None or plain is Any):
        return rule.expected
    if choices(hint):
        return listed(map(str, choices(hint)))
    kind = get_origin(plain) or plain
    usual = "a mapping" if is_dataclass(kind) else TYPES.get(kind, ("a value", ""))[0]
    noun = usual if called is None else called.noun
    return f"{noun}{_range(hint)}" if narrow else noun


def plain_type(hint: Any) -> Any:
    """Return a type without annotations and without None."""
    return unwrapped(hint)[0]


def choices(hint: Any) -> tuple[Any, ...]:
    """Return the values of a `Literal`."""
    plain = plain_type(hint)
    return get_args(plain) if get_origin(plain) is Literal else ()


def limits(hint: Any) -> dict[str, float]:
    """Return the bounds of a number, if any: `ge`, `gt`, `le` and `lt`."""
    notes = unwrapped(hint)[1]
    bounds = ((name, getattr(note, name, None)) for note in notes for name in BOUNDS)
    return {name: bound for name, bound in bounds if bound is not None}


def _range(hint: Any) -> str:
    """Format the bounds of a number as text to put after its name, such as ` from 0 to 1` or ` of at least 1`."""
    texts = _bounds(hint)
    if "ge" in texts and "le" in texts:
        return f" from {texts['ge']} to {texts['le']}"
    low = f" above {texts['gt']}" if "gt" in texts else f" of at least {texts['ge']}" if "ge" in texts else ""
    high = f" at most {texts['le']}" if "le" in texts else f" below {texts['lt']}" if "lt" in texts else ""
    between = " and" if "gt" in texts and "lt" in texts else "," if low and high else ""
    return f"{low}{between}{high}"


def _bounds(hint: Any) -> dict[str, str]:
    return {name: f"{value:,}" if isinstance(value, int) else f"{value:g}" for name, value in limits(hint).items()}


def note_in(notes: Iterable[Any], kind: type[N]) -> N | None:
    """Return the annotation of this kind, if there is one."""
    return next((note for note in notes if isinstance(note, kind)), None)


def unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without annotations or None, and its annotations. The annotations include None if None is valid."""
    notes: tuple[Any, ...] = ()
    while True:
        arguments = get_args(hint)
        if get_origin(hint) is Annotated:
            notes += hint.__metadata__
            hint = arguments[0]
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in arguments:
            notes += (None,)
            hint = Union[tuple(member for member in arguments if member is not type(None))]  # noqa: UP007  # from a list
        else:
            return hint, notes
