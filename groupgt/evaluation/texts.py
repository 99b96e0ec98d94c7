"""Converts the text of a repeatable shell option to the value that Python functions take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from groupgt.engines.order import DIRECTIONS
from groupgt.errors import ConfigError, Faults
from groupgt.model.validity import shown

N = TypeVar("N", int, float)
# Returns the value, given the option as it is typed and its texts.
Reader = Callable[[str, Sequence[str]], Any]


def pairs_in(option: str, expected: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the key and the value of each `KEY=VALUE`; raise `ConfigError` for any other text."""
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{option}: expected {expected}, found {text!r}")
        yield key.strip(), value


def mapping(expected: str, otherwise: str = "") -> Reader:
    """Return a reader of `KEY=VALUE` texts. If a key has two values, the error ends with the hint `otherwise`."""

    def read(option: str, texts: Sequence[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        for key, value in pairs_in(option, expected, texts):
            if values.setdefault(key, value) != value:
                what = f"{option} {key}: expected one value, found {values[key]!r} and {value!r}; keep one"
                raise ConfigError(f"{what}; {otherwise}" if otherwise else what)
        return values

    return read


def values_by_key(expected: str) -> Reader:
    """Return a reader of `KEY=VALUE` texts that keeps all values for a key."""

    def read(option: str, texts: Sequence[str]) -> dict[str, list[str]]:
        values: dict[str, list[str]] = {}
        for key, value in pairs_in(option, expected, texts):
            values.setdefault(key, []).append(value.strip())
        return values

    return read


def parts(_option: str, texts: Sequence[str]) -> list[str]:
    """Split text at commas, and return the parts."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def numbers_in(option: str, texts: Iterable[str], read: Callable[[str], N | None], expected: str) -> list[N]:
    """Parse distinct, comma-separated numbers; raise `ConfigError` for each text that `read` cannot parse."""
    faults = Faults()
    numbers: dict[N, None] = {}
    for text in (part.strip() for parts in texts for part in parts.split(",")):
        number = read(text)
        if number is None:
            faults.add(option, f"{expected}, found {shown(text)}")
        else:
            numbers[number] = None
    faults.stop(ConfigError)
    return list(numbers)


def cutoffs(option: str, texts: Sequence[str]) -> list[int]:
    """Parse cutoffs."""

    def cutoff(text: str) -> int | None:
        is_valid = text.isascii() and text.isdigit() and len(text) <= 16 and 0 < int(text) <= 10**15
        return int(text) if is_valid else None

    return numbers_in(option, texts, cutoff, "expected whole numbers above 0 and up to 10^15, such as 1,5,10")


def directions(option: str, texts: Sequence[str]) -> Any:
    """Return whether higher scores are better, for all runs or by run name."""
    typed_as = [text.rpartition("=") for text in texts]
    named = {name: each for name, _, value in typed_as for each in DIRECTIONS if each == value}
    if len(named) < len(typed_as) or (len(named) > 1 and "" in named):
        what = f"expected {' or '.join(DIRECTIONS)}, or NAME=ascending for each run"
        raise ConfigError(f"{option}: {what}, found {', '.join(texts)}")
    return named.get("") or named or "descending"
