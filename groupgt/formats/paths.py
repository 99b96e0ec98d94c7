"""Paths into nested records, such as `hits[].doc.id`.

    a.b          the key b of the value at a; `a|b`: a, or b where there is no a; `a?`: may be absent or null
    a[]          each element of a list; `a[0]` one of them; `a[x=v]` those whose x is v
    a[,]         each comma-separated part of a string; also `a[;]` and `a[|]`
    a{}  a{}@    each value of an object, and its key; `@` alone is the key of the row
    ^a           from the record around the row; `^@` is the key of what encloses the row
    []a          the key a of each element of an array at the top
    .            the row itself

A name in double quotes is literal. Two paths that share a list, such as `hits[].id` and `hits[].score`, visit
the same elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from groupgt.errors import ConfigError, display, near_names
from groupgt.formats.columns import SEPARATORS, is_path
from groupgt.formats.roles import has_near, shown_names
from groupgt.model.validity import id_text

# The lists and objects on the way to a value, each with the index or key in it.
Position = tuple[tuple[str, Any], ...]
Found = list[tuple[Position, Any]]
_STEP = re.compile(r'(?:\.?(?:"([^"]*)"|([^.\[\]{}?@^"]+))|\[([^\]]*)\]|(\{\})|(@))(\?)?')


class Row(NamedTuple):
    """A value, its enclosing record, the keys on the way, names that paths use, and the function that gets errors."""

    value: Any
    outer: Any
    keys: Sequence[Any]
    named: Collection[str]
    fault: Callable[[str], None]


class Step(NamedTuple):
    """A step of a path: to a member, one element, each element, matching elements, parts, values or a key."""

    kind: str
    names: tuple[str, ...] = ()
    at: int = 0
    optional: bool = False


class Path:
    """A parsed path. Raises `ConfigError` if the text is not a path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.from_outer = text.startswith("^")
        self.steps: list[Step] = []
        rest = text.removeprefix("^")
        while rest and rest != ".":
            match = _STEP.match(rest)
            if match is None or (step := _step_of(match)) is None:
                raise ConfigError(f"expected a path such as hits[].id, found {rest!r} in {text!r}")
            self.steps.append(step)
            rest = rest[match.end() :]

    @classmethod
    def of_name(cls, name: str) -> Path:
        """Return the path to a key with exactly this name."""
        path = cls(".")
        path.text, path.steps = name, [Step("member", (name,))]
        return path

    @cached_property
    def is_list(self) -> bool:
        """True if the path leads to any number of values."""
        return any(step.kind in ("each", "test", "split", "values") for step in self.steps)

    @cached_property
    def names(self) -> list[str]:
        """All names in the path."""
        return [name for step in self.steps if step.kind == "member" for name in step.names]

    @cached_property
    def around(self) -> Path:
        """The path to the record around the values: the element or value that they lie in, or the start."""
        within = [at for at, step in enumerate(self.steps[:-1]) if step.kind not in ("member", "key")]
        path = Path(".")
        path.steps = self.steps[: max(within, default=-1) + 1]
        return path

    @property
    def first(self) -> tuple[str, ...]:
        """The names at the start of the path (after `[]`), or nothing if it starts with something else."""
        steps = self.steps[1:] if self.text.startswith("[]") else self.steps
        return steps[0].names if steps and steps[0].kind == "member" else ()

    def find(self, row: Row) -> Found:
        """Return every value that the path leads to, with its position."""
        if self.steps and self.steps[0].kind == "key":
            keys = row.keys[: -1 if self.from_outer else None]
            if not keys:
                way = "with rows=a{}.hits[], @ is the index in hits, and ^@ the key in a"
                row.fault(f"expected a key around the row at {self.text}, found none; {way}")
            return [((), key) for key in keys[-1:]]
        return list(self._walk(0, row.outer if self.from_outer else row.value, (), "", "", row))

    def _walk(self, at: int, value: Any, position: Position, route: str, shown: str, row: Row) -> Iterator[Any]:
        """Yield the values that the steps from `at` lead to. `route` is the path without indices, `shown` with them."""
        if at == len(self.steps):
            yield position, value
            return
        step = self.steps[at]
        place = f" (at {shown})" if shown else ""
        inner: list[tuple[Position, Any, str, str]] = []
        if step.kind == "member":
            name = next((name for name in step.names if isinstance(value, dict) and name in value), None)
            if name is not None:
                inner.append((position, value[name], _joined(route, name), _joined(shown, name)))
            elif not isinstance(value, dict):
                way = f"; use {shown}[] to iterate over its elements" if isinstance(value, list) and shown else ""
                row.fault(f"expected an object{' as ' * bool(shown)}{shown}, found {display(value)}{way}")
            # A key that no path uses may be a misspelled name.
            elif not step.optional or has_near(step.names[0], tuple(key for key in value if key not in row.named)):
                words = near_names(step.names[0], [key for key in value if key not in row.named])
                what = f"expected the key {' or '.join(step.names)}, found {shown_names(value) if value else 'no keys'}"
                row.fault(what + place + words)
        elif step.kind == "key":
            inner.append((position, position[-1][1] if position else None, route, shown))
        elif step.kind == "values":
            if isinstance(value, dict):
                route += "{}"
                # In a table, objects have every key that any of them has.
                cells = [(key, cell) for key, cell in value.items() if cell is not None]
                inner = [((*position, (route, key)), cell, route, _joined(shown, key)) for key, cell in cells]
            else:
                row.fault(f"expected an object{' as ' * bool(shown)}{shown}, found {display(value)}")
        elif step.kind == "split" and isinstance(value, str):
            parts = [part.strip() for part in value.split(step.names[0]) if part.strip()]
            route += f"[{step.names[0]}]"
            inner = [((*position, (route, index)), part, route, shown) for index, part in enumerate(parts)]
        elif value is None:
            pass  # null is no elements
        elif not isinstance(value, list):
            way = f"; use {shown}{{}} to iterate over its values" if isinstance(value, dict) and shown else ""
            row.fault(f"expected a list{' as ' * bool(shown)}{shown}, found {display(value)}{way}")
        elif step.kind == "index":
            if -len(value) <= step.at < len(value):
                inner.append((position, value[step.at], f"{route}[{step.at}]", f"{shown}[{step.at}]"))
            elif not step.optional:
                row.fault(f"expected at least {step.at + 1} elements, found {len(value)}{place}")
        else:
            route += "[]"
            tested = (step.kind != "test" or _passes(cell, *step.names) for cell in value)
            inner = [
                ((*position, (route, index)), cell, route, f"{shown}[{index}]")
                for index, (cell, passes) in enumerate(zip(value, tested))
                if passes
            ]
        for each, cell, way, words in inner:
            if cell is not None or not step.optional:
                yield from self._walk(at + 1, cell, each, way, words, row)


@lru_cache(maxsize=512)
def path_of(text: str) -> Path:
    """Parse a path, or raise `ConfigError` if the text is not a path."""
    return Path(text)


def path_fault(text: str) -> str | None:
    """Explain why the text of a declared column is invalid, or return None if it is valid."""
    try:
        path_of(text)
    except ConfigError as error:
        return str(error) if is_path(text) else None
    return None


def beside(places: Found, found: Found, what: str, fault: Callable[[str], None]) -> list[Any]:
    """Return, for each place, the value in the same elements, or else at the same position, or None if absent."""
    values = dict(found)
    shared = [next((values[at[:n]] for n in range(len(at), -1, -1) if at[:n] in values), None) for at, _ in places]
    lists, others = ({at[0][0] for at, _ in each if at} for each in (places, found))
    if not others or lists & others:
        return shared
    if len(found) != len(places):
        fault(f"expected a {what} for each of {len(places)} results, found {len(found)}")
        return [None] * len(places)
    return [value for _, value in found]


def _joined(route: str, name: Any) -> str:
    return f"{route}.{name}" if route else str(name)


def _passes(cell: Any, name: str, wanted: str) -> bool:
    value = cell.get(name) if isinstance(cell, dict) else None
    return str(value).lower() == wanted.lower() if isinstance(value, (bool, float)) else id_text(value) == wanted


def _step_of(match: re.Match[str]) -> Step | None:
    quoted, name, inner, values, key, mark = match.groups()
    optional = mark is not None
    if values or key:
        return Step("values" if values else "key", optional=optional)
    if inner is None:
        names = (quoted,) if quoted is not None else tuple(each.strip() for each in name.split("|"))
        return Step("member", names, optional=optional) if all(names) else None
    if not inner:
        return Step("each", optional=optional)
    if inner.removeprefix("-").isdigit():
        return Step("index", at=int(inner), optional=optional)
    if inner in SEPARATORS:
        return Step("split", (inner,), optional=optional)
    tested, equals, wanted = inner.partition("=")
    return Step("test", (tested.strip(), wanted.strip()), optional=optional) if equals and tested.strip() else None
