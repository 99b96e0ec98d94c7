"""The road to options: types, ranges, choices, unknown keys and clashes, each fault with its place, all at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt

import groupgt
from groupgt.options import (
    Called,
    Clash,
    File,
    Folder,
    Rule,
    choices,
    chosen,
    limits,
    options_from,
    options_of,
    paths_of,
    read_options,
    words,
)
from groupgt.plugins import find, ours
from groupgt.schemas import schema_of


@dataclass(frozen=True)
class Every:
    """One option of every kind."""

    whole: Annotated[int, Ge(1), Le(10_000)] = 5
    share: Annotated[float, Gt(0), Le(1)] = 0.5
    wait: Annotated[float, Called("seconds"), Ge(0)] = 1.0
    flag: bool = False
    unit: Literal["chars", "pages"] = "chars"
    text: str = ""
    depth: Annotated[int, Ge(1)] | None = None
    weights: list[Annotated[float, Ge(0)]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    even: Annotated[Any, Rule("an even number", lambda value: value % 2 == 0, {"multipleOf": 2})] = 0
    path: File = ""
    model: Folder = ""

    def clashes(self) -> Iterator[Clash]:
        """A flag goes with chars, and the text is none of a few."""
        if self.flag and self.unit != "chars":
            yield Clash("flag", "goes with chars", ("unit",))
        if self.text == "no":
            yield Clash("text", "expected another text")


@dataclass(frozen=True)
class Needed:
    """An option without a default."""

    url: str
    retries: int = 0


def faults(given: dict[str, Any], **how: Any) -> list[tuple[tuple[str | int, ...], str]]:
    made, found = read_options(Every, given, **how)
    assert (made is None) == bool(found)
    return [(fault.path, fault.what) for fault in found]


FAULTS: list[tuple[dict[str, Any], tuple[str | int, ...], str]] = [
    ({"whole": 0}, ("whole",), "expected a whole number from 1 to 10,000, found 0"),
    ({"whole": 10_001}, ("whole",), "expected a whole number from 1 to 10,000, found 10001"),
    ({"whole": 1.0}, ("whole",), "expected a whole number, found 1.0"),
    ({"whole": True}, ("whole",), "expected a whole number, found True"),
    ({"whole": "1"}, ("whole",), "expected a whole number, found '1'"),
    ({"whole": None}, ("whole",), "expected a whole number, found None"),
    ({"share": 0}, ("share",), "expected a number above 0, at most 1, found 0"),
    ({"share": float("nan")}, ("share",), "expected a number, found nan"),
    ({"share": float("inf")}, ("share",), "expected a number, found inf"),
    ({"share": "half"}, ("share",), "expected a number, found 'half'"),
    ({"wait": -1}, ("wait",), "expected seconds of at least 0, found -1"),
    ({"wait": "soon"}, ("wait",), "expected seconds, found 'soon'"),
    ({"flag": 1}, ("flag",), "expected true or false, found 1"),
    ({"flag": "yes"}, ("flag",), "expected true or false, found 'yes'"),
    ({"unit": "page"}, ("unit",), "expected chars or pages, found 'page' (did you mean 'pages'?)"),
    ({"unit": 5}, ("unit",), "expected chars or pages, found 5"),
    ({"text": 5}, ("text",), "expected text, found 5"),
    ({"depth": 0}, ("depth",), "expected a whole number of at least 1, found 0"),
    ({"depth": "x"}, ("depth",), "expected a whole number, found 'x'"),
    ({"weights": 1}, ("weights",), "expected a list, found 1"),
    ({"weights": [1, -1, "x"]}, ("weights", 1), "expected a number of at least 0, found -1"),
    ({"weights": [1, 1, "x"]}, ("weights", 2), "expected a number, found 'x'"),
    ({"headers": []}, ("headers",), "expected a mapping, found []"),
    ({"headers": {"a": 5}}, ("headers", "a"), "expected text, found 5"),
    ({"headers": {5: "a"}}, ("headers", 5), "expected text, found 5"),
    ({"even": 3}, ("even",), "expected an even number, found 3"),
    ({"path": 5}, ("path",), "expected text, found 5"),
    (
        {"unt": "chars"},
        ("unt",),
        "unknown option 'unt'; known options: whole, share, wait, flag, unit, text",
    ),
    ({7: "chars"}, ("7",), "unknown option '7'; known options"),
    ({"flag": True, "unit": "pages"}, ("flag",), "goes with chars"),
    ({"text": "no"}, ("text",), "expected another text"),
]


@pytest.mark.parametrize(("given", "path", "what"), FAULTS, ids=[f"{given}" for given, *_ in FAULTS])
def test_each_fault_has_its_place_and_its_words(given: dict[str, Any], path: Any, what: str) -> None:
    found = faults(given)
    assert found[0][0] == path
    assert found[0][1].startswith(what)
    with pytest.raises(groupgt.ConfigError) as error:
        options_from(Every, given, "thing: ")
    assert str(error.value).splitlines()[0].startswith(f"thing: {'.'.join(map(str, path))}: {what}")


def test_all_faults_are_told_in_the_order_of_the_mapping() -> None:
    given = {"text": "no", "share": 2, "colour": 3, "weights": [-1, -2], "whole": "x"}
    assert [path for path, _ in faults(given)] == [
        ("text",),
        ("share",),
        ("colour",),
        ("weights", 0),
        ("weights", 1),
        ("whole",),
    ]


def test_nothing_is_said_of_what_follows_from_another_fault() -> None:
    assert [path for path, _ in faults({"flag": True, "unit": "page"})] == [("unit",)]
    assert [path for path, _ in faults({"flag": 1, "unit": "pages"})] == [("flag",)]
    assert [path for path, _ in faults({"flag": True, "unit": "pages", "share": 2})] == [("flag",), ("share",)]


def test_sound_values_come_as_their_types_have_them() -> None:
    table = {"c": [1]}
    made = options_from(Every, {"share": 1, "whole": 10_000, "depth": None, "weights": [1, 0.5], "unit": "pages"})
    assert (made.share, type(made.share), made.whole, made.depth, made.unit) == (1.0, float, 10_000, None, "pages")
    assert made.weights == [1.0, 0.5]
    assert options_from(Every, {"share": np.float64(0.25)}).share == 0.25
    given = {"chunks": table}
    from groupgt.labellers.spans import Options

    assert options_from(Options, given).chunks is table


def test_what_is_needed() -> None:
    made, found = read_options(Needed, {})
    assert made is None
    assert [(fault.path, fault.what) for fault in found] == [(("url",), "required key is missing")]
    made, found = read_options(Needed, {"retries": "x"})
    assert [fault.path for fault in found] == [("retries",), ("url",)]
    assert options_from(Needed, {"url": "a"}) == Needed("a")


def test_a_shell_has_texts() -> None:
    given = {"whole": "7", "share": "1e-3", "flag": "True", "text": "5", "depth": "3"}
    made = options_from(Every, given, texts=True)
    assert (made.whole, made.share, made.flag, made.text, made.depth) == (7, 0.001, True, "5", 3)
    assert [path for path, _ in faults({"whole": "1.5", "share": "1_0", "flag": "yes"}, texts=True)] == [
        ("whole",),
        ("share",),
        ("flag",),
    ]


def test_options_that_check_themselves_as_plugins_of_others_do() -> None:
    @dataclass(frozen=True)
    class Old:
        k: int = 1

        def __post_init__(self) -> None:
            if self.k < 1:
                raise groupgt.ConfigError(f"k: expected at least 1, found {self.k}")

    _, found = read_options(Old, {"k": 0})
    assert [(fault.path, fault.what) for fault in found] == [(("k",), "expected at least 1, found 0")]
    assert options_from(Old, {"k": 2}) == Old(2)


def test_no_options_at_all() -> None:
    assert options_from(None, {}) is None
    _, found = read_options(None, {"a": 1})
    assert found[0].what == "unknown option 'a'; there are no options"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (Annotated[int, Ge(1)], "a whole number of at least 1"),
        (Annotated[float, Gt(0), Lt(1)], "a number above 0 and below 1"),
        (Annotated[float, Interval(ge=0, le=2)], "a number from 0 to 2"),
        (Annotated[float, Le(0.25)], "a number at most 0.25"),
        (Annotated[int, Ge(1)] | None, "a whole number of at least 1"),
        (list[int], "a list"),
        (dict[str, Any], "a mapping"),
        (Any, "a value"),
        (File, "text"),
    ],
)
def test_words_for_annotations(hint: Any, expected: str) -> None:
    assert words(hint) == expected


def test_what_annotations_hold() -> None:
    assert limits(Annotated[float, Gt(0), Le(1)]) == {"gt": 0, "le": 1}
    assert choices(Literal["a", "b"]) == ("a", "b")
    assert choices(str) == ()
    paths = {option.name for option in options_of(Every).values() if option.is_path}
    assert (paths, [option.name for option in options_of(Every).values() if option.is_folder]) == ({"path"}, ["model"])
    assert paths_of(Every, {"path": "a.csv", "model": "m"}) == ["path"]
    assert paths_of(Every, {"path": ""}) == paths_of(Every, {"path": {"a": 1}}) == []


def test_the_json_schema_says_what_the_annotations_say() -> None:
    schema = schema_of(Every)
    said = schema["properties"]
    assert said["whole"] == {"default": 5, "minimum": 1, "maximum": 10_000, "type": "integer"}
    assert (said["share"]["exclusiveMinimum"], said["share"]["maximum"]) == (0, 1)
    assert said["unit"]["enum"] == ["chars", "pages"]
    assert said["weights"]["items"] == {"type": "number", "minimum": 0}
    assert said["even"]["multipleOf"] == 2
    assert schema["additionalProperties"] is False
    assert schema["description"] == "One option of every kind."
    assert schema_of(Needed)["required"] == ["url"]


def test_a_plugin_is_chosen_by_name_or_with_options() -> None:
    assert chosen("labeller", "id")[0] is find("labeller", "id")
    plugin, options = chosen("labeller", {"use": "spans", "with": {"min_overlap": 1}})
    assert (plugin.name, options.min_overlap) == ("spans", 1.0)
    assert chosen("engine", {"use": "auto", "with": None})[0].name == "auto"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (5, 'labeller: expected a name, {"use": name, "with": {…}}, or a Labeller, found 5'),
        ({"use": "id", "options": {}}, "labeller: expected a name"),
        ({"use": "span"}, "labeller: expected id, parents, spans, text, embedding or code, found 'span' (did you mean"),
        ({"use": "spans", "with": [1]}, "labeller with: expected options by name, found [1]"),
        (
            {"use": "spans", "with": {"min_overlap": 2, "x": 1}},
            "labeller spans: min_overlap: expected a number",
        ),
    ],
)
def test_what_names_no_plugin(spec: Any, words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as error:
        chosen("labeller", spec, also="a Labeller")
    assert str(error.value).startswith(words)


@pytest.mark.parametrize("kind", ["labeller", "retriever", "tokenizer", "engine"])
def test_defaults_of_ours_are_what_the_annotations_allow(kind: str) -> None:
    for name in ours(kind):
        plugin = find(kind, name)
        given = {option.name: option.default for option in options_of(plugin.options).values() if not option.needed}
        given = {key: value for key, value in given.items() if value not in (None, "")}
        _, found = read_options(plugin.options, given)
        assert [fault.what for fault in found if fault.option in given] == []
