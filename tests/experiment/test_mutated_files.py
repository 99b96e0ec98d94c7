"""Files that are no experiment, but once were one: whatever is put anywhere is told, and never with a traceback."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import groupgt
from groupgt.experiment.plan import plan
from tests.experiment.faulty_files import GOOD, written

FULL = GOOD.replace(
    "timed: 2", "timed: 2\n  policy: {missing: zero}\n  labeller: {use: id, with: {}}\n  tokenizer: whitespace"
)
FULL = FULL.replace("groupgt:", "engine: {use: streaming, with: {memory: 2GB}}\ngroupgt:")
FULL = FULL.replace(
    "  stored:\n", "  asked: {use: http, with: {url: 'http://127.0.0.1:9/', headers: {a: b}}}\n  stored:\n"
)
VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        5,
        -1,
        1.5,
        1e308,
        10**30,
        "",
        " ",
        "text",
        "id",
        "bm25",
        "*",
        "\0",
        "é\u2028",
        "x" * 70_000,
        "${env:X}",
    ),
    *(
        [],
        [[]],
        [None],
        ["a", 5],
        [{"a": 1}],
        {},
        {"": None},
        {"use": {"b": "c"}},
        {"use": "bm25", "with": 5},
        {"a": {"b": ["c"]}},
    ),
]
Path_ = tuple[Any, ...]
# The compiled one writes the same and takes a tenth of the time.
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def paths(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Every place in a value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*path, key))


def at(value: Any, path: Path_) -> Any:
    for part in path:
        value = value[part]
    return value


def put(value: Any, path: Path_, new: Any) -> Any:
    """The value with something else in one place."""
    if not path:
        return new
    at(value, path[:-1])[path[-1]] = new
    return value


def mutated(value: Any, rng: random.Random) -> Any:
    """The value with one thing replaced, removed, added, wrapped, renamed or moved."""
    path = rng.choice(list(paths(value)))
    here = at(value, path)
    way = rng.randrange(7)
    if way == 0 and isinstance(here, dict) and here:
        here.pop(rng.choice(list(here)))
        return value
    if way == 1 and isinstance(here, dict) and here:
        here[rng.choice(["k1", "with", "use", "0", "on", "a.b", "é", "x" * 200])] = here.pop(rng.choice(list(here)))
        return value
    if way == 2 and isinstance(here, (dict, list)) and here:
        if isinstance(here, list):
            here.insert(0, copy.deepcopy(rng.choice(VALUES)))
        else:
            here[rng.choice(["extra", "k1", "matrix", "inputs", "use"])] = copy.deepcopy(rng.choice(VALUES))
        return value
    if way == 3:
        return put(value, path, [here] if rng.random() < 0.5 else {"a": here})
    if way == 4:
        return put(value, path, copy.deepcopy(at(value, rng.choice(list(paths(value))))))
    return put(value, path, copy.deepcopy(rng.choice(VALUES)))


def check(folder: Path, value: Any) -> None:
    """The file is refused in our words, or accepted."""
    file = written(folder, yaml.dump(value, Dumper=DUMPER, allow_unicode=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", groupgt.GroupgtWarning)
        # Whatever else is raised fails the test.
        with suppress(groupgt.GroupgtError):
            plan(file)


@pytest.mark.parametrize(
    "systems",
    [5, None, "bm25", [], ["a"], True, {"a": {"use": {"b": "c"}, "k1": 1}}, {"a": {"use": ["x"], "k1": 1}}, {"a": 5}],
    ids=str,
)
def test_systems_that_are_none(folder: Path, systems: Any) -> None:
    value = {**yaml.safe_load(GOOD), "systems": systems}
    with pytest.raises(groupgt.ConfigError, match=r"systems"):
        plan(written(folder, yaml.safe_dump(value)))


@pytest.mark.slow
def test_some_values_in_some_places(folder: Path) -> None:
    good, rng = yaml.safe_load(FULL), random.Random(7)
    places = list(paths(good))
    for _ in range(15):
        check(folder, put(copy.deepcopy(good), rng.choice(places), copy.deepcopy(rng.choice(VALUES))))


@pytest.mark.property
def test_every_value_in_every_place(folder: Path) -> None:
    good = yaml.safe_load(FULL)
    for path in paths(good):
        for value in VALUES:
            check(folder, put(copy.deepcopy(good), path, copy.deepcopy(value)))


@pytest.mark.property
@pytest.mark.parametrize("seed", range(4))
def test_several_things_at_once(folder: Path, seed: int) -> None:
    good, rng = yaml.safe_load(FULL), random.Random(seed)
    for _ in range(1000):
        value = copy.deepcopy(good)
        for _ in range(rng.randint(1, 4)):
            value = mutated(value, rng)
        check(folder, value)
