"""One road to options: from a mapping (of a YAML file, of `--with`, of Python) to a dataclass, with every fault.

A dataclass says by its annotations what each option may be: `Annotated[float, Gt(0), Le(1)]` of annotated-types,
`Literal["chars", "pages"]`, a `File`, or a `Rule`. What options must not be together, or what no annotation says, its
method `clashes` yields. pydantic, which takes a while to import, checks what was given, where anything was.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from inspect import getdoc
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from groupgt.errors import ConfigError, Faults, GroupgtError, display, listed, near_names
from groupgt.plugins import Plugin, find


class Clash(NamedTuple):
    """What is wrong at an option; nothing is said of it where one of those that it stands `beside` is at fault."""

    option: str
    what: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """An annotation: what a value must be where no type says so, in words, as a test, and as a JSON Schema."""

    expected: str
    holds: Callable[[Any], bool]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import PydanticCustomError, core_schema

        def checked(value: Any) -> Any:
            if not self.holds(value):
                raise PydanticCustomError("rule", "{expected}", {"expected": self.expected})
            return value

        return core_schema.no_info_plain_validator_function(checked)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


@dataclass(frozen=True)
class Called:
    """An annotation: what messages call a number, such as `seconds`."""

    noun: str


@dataclass(frozen=True)
class Names:
    """An annotation: the text names a file, or it may name a folder."""

    what: str


FILE, FOLDER = Names("file"), Names("folder")
# A path that is relative to the experiment file, with `{dataset}` filled in.
File = Annotated[str, FILE]
# A folder beside the experiment file where there is one, else a name.
Folder = Annotated[str, FOLDER]


@dataclass(frozen=True)
class Fault:
    """What is wrong with a value: the option and, where it is one of several, the way to it."""

    path: tuple[str | int, ...]
    what: str
    unknown: bool = False

    @property
    def option(self) -> str:
        """The name of the option."""
        return str(self.path[0])


def chosen(kind: str, spec: Any, *, texts: bool = False, also: str = "") -> tuple[Plugin, Any]:
    """The plugin and its options, of a name or `{"use": name, "with": {option: value}}`.

    With `texts`, as a shell has them, numbers and truth values are read from text; `also` is what else may be given.
    Raises `ConfigError` with every fault.

    >>> plugin, options = chosen("engine", {"use": "streaming", "with": {"memory": "2GB"}})
    >>> plugin.name, options.memory
    ('streaming', '2GB')
    """
    if isinstance(spec, str):
        spec = {"use": spec}
    if not isinstance(spec, Mapping) or not isinstance(spec.get("use"), str) or set(spec) - {"use", "with"}:
        ways = ["a name", '{"use": name, "with": {…}}', *([also] if also else [])]
        raise ConfigError(f"{kind}: expected {', '.join(ways[:-1])}, or {ways[-1]}, found {display(spec)}")
    try:
        plugin: Plugin = find(kind, spec["use"])
    except ConfigError as error:
        raise ConfigError(f"{kind}: {error}") from None
    given = spec.get("with") or {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{kind} with: expected options by name, found {display(given)}")
    return plugin, options_from(plugin.options, given, f"{kind} {plugin.name}: ", texts=texts)


def options_from(kind: type[Any] | None, given: Mapping[str, Any], where: str = "", *, texts: bool = False) -> Any:
    """The options that a mapping holds; raises `ConfigError` with every fault, what is at fault behind `where`."""
    options, wrong = read_options(kind, given, texts=texts)
    faults = Faults()
    for fault in wrong:
        faults.add(f"{where}{'.'.join(map(str, fault.path))}", fault.what)
    faults.stop(ConfigError)
    return options


def read_options(
    kind: type[Any] | None,
    given: Mapping[str, Any],
    *,
    texts: bool = False,
    show: Callable[[Any], str] = display,
) -> tuple[Any, list[Fault]]:
    """The options that a mapping holds, None where some are at fault; and every fault, in the order of the mapping.

    With `texts` numbers and truth values are read from text. `show` says how a message shows a value.
    """
    known = options_of(kind)
    faults = [_unknown(str(key), known) for key in given if key not in known]
    values = {key: value for key, value in given.items() if key in known}
    if texts:
        values = {key: _from_text(value, known[key].hint) for key, value in values.items()}
    if kind is not None and (values or any(option.needed for option in known.values())):
        values, wrong = _validated(kind, values, show)
        faults += wrong
    made = None
    if kind is not None and not any(option.needed and option.name not in values for option in known.values()):
        made, clashes = _made(kind, values)
        at_fault = {fault.option for fault in faults}
        faults += [
            Fault((clash.option,), clash.what)
            for clash in clashes
            if clash.option not in at_fault and at_fault.isdisjoint(clash.beside)
        ]
    order = {str(key): position for position, key in enumerate(given)}
    faults.sort(key=lambda fault: order.get(fault.option, len(order)))
    return (None if faults else made), faults


def check_options(options: Any) -> None:
    """Raises `ConfigError` with every fault of options that were built in Python, such as by a `__post_init__`.

    What stands at its default is sound.
    """
    known = options_of(type(options)).values()
    values = {each.name: getattr(options, each.name) for each in known}
    defaults = {each.name: each.default for each in known if not each.needed}
    chosen = {
        name: value
        for name, value in values.items()
        if not (name in defaults and type(value) is type(defaults[name]) and value == defaults[name])
    }
    faults = Faults()
    for fault in _validated(type(options), chosen, display)[1] if chosen else []:
        faults.add(".".join(map(str, fault.path)), fault.what)
    faults.stop(ConfigError)


def _unknown(name: str, known: Iterable[str]) -> Fault:
    names = list(known)
    there = f"known options: {', '.join(names)}" if names else "there are none"
    return Fault((name,), f"unknown option {name!r}; {there}{near_names(name, names)}", unknown=True)


def _from_text(value: Any, hint: Any) -> Any:
    """A text as the number or truth value that it spells, where one is wanted."""
    plain = _plain(hint)[0]
    if not isinstance(value, str):
        return value
    if plain is bool:
        return {"true": True, "false": False}.get(value.lower(), value)
    if plain in (int, float) and "_" not in value:
        try:
            return plain(value)
        except ValueError:
            return value
    return value


def _made(kind: type[Any], values: Mapping[str, Any]) -> tuple[Any, list[Clash]]:
    """The dataclass, and what its values must not be together; its constructor may raise as well, with `key: what`."""
    try:
        made = kind(**values)
    except GroupgtError as error:
        told = [text.partition(": ") for text in error.faults]
        return None, [Clash(option, what) for option, _, what in told]
    return made, list(made.clashes()) if hasattr(made, "clashes") else []


def _validated(
    kind: type[Any], values: Mapping[str, Any], show: Callable[[Any], str]
) -> tuple[dict[str, Any], list[Fault]]:
    """Those values that are sound, as their types have them, and the faults of the others."""
    from pydantic import ValidationError

    try:
        model = _model(kind).model_validate(values)
    except ValidationError as error:
        hints = {option.name: option.hint for option in options_of(kind).values()}
        faults = [_told(each, hints[str(each["loc"][0])], show) for each in error.errors(include_url=False)]
        at_fault = {fault.option for fault in faults}
        sound = {key: value for key, value in values.items() if key not in at_fault}
        return (_validated(kind, sound, show)[0] if at_fault & set(values) else sound), faults
    return {key: getattr(model, key) for key in values}, []


def _told(error: Mapping[str, Any], hint: Any, show: Callable[[Any], str]) -> Fault:
    """A fault of pydantic in our words."""
    path = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "missing":
        return Fault(path, "required key is missing")
    hint, value = _within(hint, error["loc"][1:]), error["input"]
    expected = error["msg"] if error["type"] == "rule" else words(hint, whole=error["type"] in OUT_OF_RANGE)
    near = near_names(value, choices(hint)) if isinstance(value, str) and choices(hint) else ""
    return Fault(path, f"expected {expected}, found {show(value)}{near}")


OUT_OF_RANGE = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")


def _model(kind: type[Any]) -> Any:
    """A strict model of pydantic with the fields of a dataclass."""
    from pydantic import ConfigDict, create_model
    from pydantic import Field as PydanticField

    if kind not in MODELS:
        strict = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
        wanted: dict[str, Any] = {
            option.name: (
                Annotated[option.hint, PydanticField(description=option.description or None)],
                ... if option.needed else option.default,
            )
            for option in options_of(kind).values()
        }
        MODELS[kind] = create_model(kind.__name__, __config__=strict, **wanted)
    return MODELS[kind]


def schema_of(kind: type[Any]) -> dict[str, Any]:
    """The JSON Schema of options, with the docstring of their dataclass."""
    schema: dict[str, Any] = _model(kind).model_json_schema()
    schema.pop("title", None)
    for each in schema.get("properties", {}).values():
        each.pop("title", None)
    return {**schema, "description": getdoc(kind) or ""}


# ---- what a dataclass says of its options ------------------------------------------------------------------------


def paths_of(kind: type[Any] | None, given: Mapping[str, Any]) -> list[str]:
    """Which of these options name files."""
    paths = [option.name for option in options_of(kind).values() if option.is_path]
    return [name for name in paths if isinstance(given.get(name), str) and given[name]]


@dataclass(frozen=True)
class Option:
    """One option: its name, its annotation, and its default, where there is one.

    `is_path`: it names a file, relative to the experiment file, with `{dataset}` filled in. `is_folder`: it may name a
    folder. `written` is how its value is spelled in a name, where that is more than its own name in capitals. The
    `description` says what it means, where a `Doc` of typing_extensions does.
    """

    name: str
    hint: Any
    default: Any
    needed: bool = False
    is_path: bool = False
    is_folder: bool = False
    written: str = ""
    description: str = ""

    @property
    def expected(self) -> str:
        """What it may be, in words."""
        return words(self.hint)


def options_of(kind: type[Any] | None) -> dict[str, Option]:
    """The options of a dataclass by name."""
    if kind is None:
        return {}
    if kind not in READ:
        hints = get_type_hints(kind, include_extras=True)
        READ[kind] = {each.name: _option(each, hints[each.name]) for each in fields(kind)}
    return READ[kind]


# What was read of dataclasses, and the models of pydantic made of them.
READ: dict[Any, dict[str, Option]] = {}
MODELS: dict[Any, Any] = {}


def _option(own: Field[Any], hint: Any) -> Option:
    default = own.default_factory() if own.default_factory is not MISSING else own.default
    notes = _plain(hint)[1]
    return Option(
        own.name,
        hint,
        None if default is MISSING else default,
        default is MISSING,
        is_path=FILE in notes or "path" in own.metadata,
        is_folder=FOLDER in notes or "folder" in own.metadata,
        written=own.metadata.get("written", ""),
        description=next((note.documentation for note in notes if hasattr(note, "documentation")), ""),
    )


def words(hint: Any, *, whole: bool = True) -> str:
    """What an annotation asks for, in words; not the `whole` of it: without its range.

    >>> words(Literal["chars", "pages", "lines"]), words(bool)
    ('chars, pages or lines', 'true or false')
    """
    plain, notes = _plain(hint)
    rule = next((note for note in notes if isinstance(note, Rule)), None)
    if rule is not None:
        return rule.expected
    if choices(hint):
        return listed(map(str, choices(hint)))
    called = [note.noun for note in notes if isinstance(note, Called)]
    noun = called[0] if called else NOUNS.get(get_origin(plain) or plain, "a value")
    return f"{noun}{_range(hint)}" if whole else noun


NOUNS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def plain_type(hint: Any) -> Any:
    """A type without its annotations and without None.

    >>> plain_type(Annotated[float, "at least 0"] | None)
    <class 'float'>
    """
    return _plain(hint)[0]


def choices(hint: Any) -> tuple[Any, ...]:
    """The values of a `Literal`."""
    plain = _plain(hint)[0]
    return get_args(plain) if get_origin(plain) is Literal else ()


def limits(hint: Any) -> dict[str, float]:
    """The bounds of a number: `ge`, `gt`, `le` and `lt`, as far as there are."""
    notes = _plain(hint)[1]
    found = ((name, getattr(note, name, None)) for note in notes for name in ("ge", "gt", "le", "lt"))
    return {name: value for name, value in found if value is not None}


def _range(hint: Any) -> str:
    """` from 0 to 1`, ` above 0, at most 1`, ` of at least 1`: the bounds of a number, behind what it is called."""
    said = {name: f"{value:,}" if isinstance(value, int) else f"{value:g}" for name, value in limits(hint).items()}
    if "ge" in said and "le" in said:
        return f" from {said['ge']} to {said['le']}"
    low = f" above {said['gt']}" if "gt" in said else f" of at least {said['ge']}" if "ge" in said else ""
    high = f" at most {said['le']}" if "le" in said else f" below {said['lt']}" if "lt" in said else ""
    between = " and" if "gt" in said and "lt" in said else "," if low and high else ""
    return f"{low}{between}{high}"


def _plain(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without its annotations and without None, and the annotations."""
    notes: tuple[Any, ...] = ()
    while True:
        if get_origin(hint) is Annotated:
            notes += hint.__metadata__
            hint = get_args(hint)[0]
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            hint = next(each for each in get_args(hint) if each is not type(None))
        else:
            return hint, notes


def _within(hint: Any, path: Iterable[Any]) -> Any:
    """The type of what lies within a value."""
    for part in path:
        arguments = get_args(_plain(hint)[0])
        if not arguments or part == "[key]":
            return hint
        hint = arguments[-1]
    return hint
