"""The JSON Schema of experiment files agrees with what is checked, on what is good and on what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from groupgt.cli.main import main
from groupgt.experiment.starter import write_starter
from groupgt.experiment.yaml import read_yaml
from groupgt.options import Option, choices, limits, options_of, read_options
from groupgt.plugins import find, ours
from tests.experiment.faulty_files import (
    BEST,
    GATES,
    Change,
    changed,
    told,
    written,
)
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "configs" / "groupgt.schema.json").read_text(encoding="utf-8"))


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema"])
    assert json.loads(capsys.readouterr().out) == SCHEMA
    with pytest.raises(SystemExit, match="2"):
        main(["schema", "results"])


def objections(file: Path) -> list[str]:
    """What the JSON Schema says against a file."""
    jsonschema = pytest.importorskip("jsonschema", reason="the extra groupgt[checks] is not installed")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(read_yaml(file).value)]


def test_the_schema_is_one() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the extra groupgt[checks] is not installed")
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda file: file.name)
def test_the_schema_accepts_every_config(file: Path) -> None:
    assert objections(file) == []


def test_the_schema_accepts_the_starter(tmp_path: Path) -> None:
    assert objections(write_starter(tmp_path / "own")[0]) == []


ACCEPTED: dict[str, list[Change]] = {
    "as it is": [],
    "a system in short": [("plain: bm25", "plain: {use: bm25}")],
    "a system with nothing": [("plain: bm25", "plain: {use: bm25, with: {}, matrix: {}, inputs: [], only: []}")],
    "one dataset": [("[mine]", "mine")],
    "one input": [('["sweep*"]', '"sweep*"')],
    "no where": [("    where: {type: [single, multi]}\n", "")],
    "where of a number": [("{type: [single, multi]}", "{year: [2020, 2021]}")],
    "where of one text": [("{type: [single, multi]}", "{type: multi}")],
    "one cutoff": [("k: [1, 3]", "k: 3"), ("[recall@1, ", "[recall@3, ")],
    "one metric": [("[recall, ndcg, redundancy]", "ndcg"), ("[recall@1, ", "["), (GATES, "")],
    "no cutoffs": [("k: [1, 3]", "k: []"), ("[recall, ndcg, redundancy]", "[recall@1, recall@3, ndcg@3]")],
    "the best in short": [(BEST, "strategy: rank"), ("best:\n    strategy: rank", "best: rank")],
    "one metric of the best": [("[recall@1, ndcg@3]", "ndcg@3")],
    "no ceiling": [("max_latency_ms: 10000", "max_latency_ms: null")],
    "a whole ceiling": [("max_latency_ms: 10000", "max_latency_ms: 1.5e4")],
    "one slice": [("by: [type]", "by: n_groups")],
    "a labeller in short": [("timed: 2", "labeller: id")],
    "a labeller": [("timed: 2", "labeller: {use: id, with: {}}")],
    "a policy in short": [("timed: 2", "policy: trec")],
    "a policy": [("timed: 2", "policy: {preset: trec, missing: zero}")],
    "what is relevant": [("timed: 2", "policy: {level: 2, undefined: zero, empty_groups: unmeetable}")],
    "one format": [("[table, json]", "latex")],
    "no formats": [("[table, json]", "[]")],
    "no cache": [("cache: cache", "cache: null")],
    "nothing for a cache": [("cache: cache", "cache:")],
    "no primary": [("primary: ndcg@3", "primary: null")],
    "no least version": [('">=0.1"', "null")],
    "no comparison": [("compare:\n  baseline: plain", "compare: null"), ("max_drop: 0.9", "min: 0.1")],
    "no gates": [(GATES, "gate: []\n")],
    "a bound of a whole number": [("min: 0.1", "min: 0, max: null, unless: null")],
    "a slice of a number": [("{type: multi}", "{year: 2021}")],
    "a slice of groups": [("{type: multi}", "{n_groups: 2}")],
    "an option of nothing": [("{depth: 50}", "{depth: null}")],
    "an option of a list": [("{depth: 50}", "{weights: [1, 0.5]}")],
    "a whole number for a number": [("{stopwords: english}", "{stemmer: none}"), ("[0.9, 1.2]", "[0.9, 1]")],
    "a needed option in a matrix": [("with: {path: run.trec}", "matrix: {path: [run.trec]}")],
    "a variable": [("path: run.trec", "path: '${env:GROUPGT_UNSET:-run}.trec'")],
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_the_schema_accepts_what_the_check_accepts(folder: Path, name: str) -> None:
    text = changed(*ACCEPTED[name])
    assert told(folder, text) == []
    assert objections(folder / "e.yaml") == []


@pytest.mark.parametrize("change", [("{depth: 50}", "{depht: 50}"), ("timed: 2", "labeller: {use: id, depht: 1}")])
def test_the_schema_names_the_key_that_is_wrong(folder: Path, change: Change) -> None:
    (folder / "e.yaml").write_text(changed(change), encoding="utf-8")
    (objection,) = objections(folder / "e.yaml")
    assert "'depht' was unexpected" in objection


@pytest.mark.parametrize("value", ["vital", "[vital, okay]"])
def test_importances_are_read_from_the_file(folder: Path, value: str, snapshot: Snapshot) -> None:
    """The ground truth of the file has none, which is said once it is read."""
    text = changed(("timed: 2", f"policy: {{level: 0.5, importance: {value}}}"))
    snapshot(told(folder, text)[0])
    assert objections(folder / "e.yaml") == []


@pytest.mark.parametrize(
    "change",
    [
        ("seed: 7", "sead: 7"),
        ("    where:", "    were:"),
        ("on_error: skip", "onerror: skip"),
        ("{depth: 50}", "{depht: 50}"),
        ("{path: run.trec}", "{path: run.trec, k1: 1}"),
        ("  depth: 20", "  depht: 20"),
        ("max_latency_ms", "max_latency"),
        ("timed: 2", "labeller: {use: id, wiht: {}}"),
        (": plain\ngate", ": plain\n  tset: t\ngate"),
        ("min: 0.1", "mni: 0.1"),
        ("folder: out", "foldr: out"),
        ("k1: [0.9, 1.2]", "k3: [0.9, 1.2]"),
        ("timed: 2", "policy: {mising: zero}"),
    ],
    ids=lambda change: change[1].strip().splitlines()[-1],
)
def test_the_schema_refuses_unknown_keys(folder: Path, change: Change) -> None:
    assert objections(written(folder, changed(change)))


@pytest.mark.parametrize(
    "change",
    [
        ("version: 1", "version: 2"),
        ("name: trial", "name: ../x"),
        ("seed: 7", "seed: -1"),
        ("convention: coverage", "convention: coverge"),
        ("{depth: 50}", "{depth: deep}"),
        ("b: [0.4, 0.75]", "b: []"),
        ("b: [0.4, 0.75]", "b: 0.4"),
        ("on_error: skip", "on_error: skp"),
        ("k: [1, 3]", "k: [0]"),
        ("[recall, ndcg, redundancy]", "[]"),
        ("strategy: rank", "strategy: rnk"),
        ("baseline: plain", "alpha: 0.5"),
        ("max_drop: 0.9", "max_drop: -1"),
        ("max_drop: 0.9", "max_drop: 0.9, unless: lucky"),
        ("{type: multi}", "{type: [multi]}"),
        ("[table, json]", "[tabel]"),
        ("cache: cache", "cache: 5"),
    ],
    ids=lambda change: change[1].replace("\n", " "),
)
def test_the_schema_refuses_wrong_values(folder: Path, change: Change) -> None:
    assert told(folder, changed(change))
    assert objections(folder / "e.yaml")


OPTIONS = [
    (kind, name, option)
    for kind in ("labeller", "retriever", "engine")
    for name in ours(kind)
    for option in options_of(find(kind, name).options).values()
]


def section(kind: str, name: str, options: dict[str, Any]) -> Any:
    """What the JSON Schema says against the section of a part with these options."""
    jsonschema = pytest.importorskip("jsonschema", reason="the extra groupgt[checks] is not installed")
    title = {"labeller": "LabellerConfig", "retriever": "SystemConfig", "engine": "EngineConfig"}[kind]
    schema = {"$ref": f"#/$defs/{title}", "$defs": SCHEMA["$defs"]}
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors({"use": name, "with": options})]


@pytest.mark.parametrize(("kind", "name", "option"), OPTIONS, ids=lambda each: getattr(each, "name", each))
def test_the_schema_has_the_range_and_the_choices_of_every_option(kind: str, name: str, option: Option) -> None:
    """A value just outside is refused, by the schema as by the check; the default and the bounds are not."""
    inside = [option.default] if option.default not in (None, "") and not option.needed else []
    outside: list[Any] = [[["no such value"]]]
    whole = option.expected.startswith("a whole number")
    for bound, value in limits(option.hint).items():
        step = 1 if whole else 1e-9 * max(1, abs(value))
        beyond = value + (step if bound in ("le", "lt") else -step)
        inside += [value] if bound in ("ge", "le") else []
        outside += [beyond] if bound in ("ge", "le") else [value]
    if choices(option.hint):
        inside += choices(option.hint)
        outside.append("no such choice")
    plugin = find(kind, name)
    for value in inside:
        assert section(kind, name, {option.name: value}) == []
    for value in outside:
        assert section(kind, name, {option.name: value}), value
        assert [fault.option for fault in read_options(plugin.options, {option.name: value})[1]].count(option.name) == 1


def test_most_options_have_a_range_or_choices() -> None:
    assert sum(bool(limits(option.hint) or choices(option.hint)) for *_, option in OPTIONS) > 25


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("whitespace", True),
        ("tiktoken:cl100k_base", True),
        ("tokenizers:words.json", True),
        ("python:mine:count", True),
        ("one_of_a_plugin", True),
        ("another:of_a_plugin", True),
        ("tiktoken", False),
        ("tiktoken:", False),
        ("whitespace:x", False),
        ("python:", False),
    ],
)
def test_the_schema_knows_how_tokenizers_are_written(folder: Path, name: str, is_good: bool) -> None:
    found = objections(written(folder, changed(("timed: 2", f"tokenizer: '{name}'"))))
    assert (not found) == is_good


@pytest.mark.parametrize(
    "change",
    [
        ("plain: bm25", "plain: one_of_a_plugin"),
        ("plain: bm25", "plain: {use: one_of_a_plugin, with: {anything: [1, {a: b}]}, matrix: {k: [1, 2]}}"),
        ("timed: 2", "labeller: one_of_a_plugin"),
        ("timed: 2", "labeller: {use: one_of_a_plugin, with: {anything: 1}}"),
        ("metrics: [recall, ndcg, redundancy]", "metrics: [one_of_a_plugin@5]"),
    ],
)
def test_the_schema_allows_what_plugins_bring(folder: Path, change: Change) -> None:
    assert objections(written(folder, changed(change))) == []


@pytest.mark.parametrize(
    "change",
    [
        ("timed: 2", "labeller: {use: spans, with: {min_overlap: 0}}"),
        ("timed: 2", "labeller: {use: spans, with: {unit: words}}"),
        ("timed: 2", "labeller: {use: spans, with: {chunk: a.csv}}"),
        ("cache: cache", "cache: cache\nengine: {use: streaming, with: {memry: 2GB}}"),
        ("cache: cache", "cache: cache\nengine: {use: fast}"),
        ("{stopwords: english}", "{stopwords: klingon}"),
        ("k1: [0.9, 1.2]", "k1: [0.9, 1001]"),
        ("weights: [[1, 1, 1, 1], [1, 2, 3, 4]]", "weights: [[1, 1, 1, -1]]"),
    ],
)
def test_the_schema_refuses_options_that_the_check_refuses(folder: Path, change: Change) -> None:
    assert told(folder, changed(change))
    assert objections(folder / "e.yaml")


def undescribed(schema: Any, path: str = "") -> list[str]:
    """The paths of keys without a description, in a schema and all that lies within it."""
    if isinstance(schema, list):
        return [way for part in schema for way in undescribed(part, path)]
    if not isinstance(schema, dict):
        return []
    is_condition = {"if", "then"} & schema.keys()  # which says more of keys that are described elsewhere
    properties = {} if is_condition else schema.get("properties", {})
    ways = [f"{path}.{key}" for key, part in properties.items() if not part.get("description")]
    below = {key: part for key, part in schema.items() if key not in ("properties", "allOf", "if", "then", "default")}
    ways += [way for key, part in properties.items() for way in undescribed(part, f"{path}.{key}")]
    return ways + [way for key, part in below.items() for way in undescribed(part, f"{path} {key}")]


def test_every_key_has_a_description() -> None:
    assert undescribed(SCHEMA) == []
    swept = [part["then"]["properties"] for part in SCHEMA["$defs"]["SystemConfig"]["allOf"]]
    assert all(option["description"] for keys in swept for option in keys["matrix"]["properties"].values())
    assert undescribed({"properties": {"a": {"anyOf": [{"properties": {"b": {}}}]}}}) == [".a", ".a anyOf.b"]


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ("labeller", "retriever", "engine", "tokenizer") for name in ours(kind)]
)
def test_every_option_has_a_description(kind: str, name: str) -> None:
    for option in options_of(find(kind, name).options).values():
        assert option.description.endswith("."), f"{option.name}: expected a Doc with a sentence"
