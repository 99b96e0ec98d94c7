"""Faulty experiment files: each fault once, at its place, in its words; the JSON Schema agrees with the check."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt import plugins
from groupgt.cli.main import main
from groupgt.experiment.plan import plan
from groupgt.experiment.starter import write_starter
from groupgt.experiment.yaml import read_yaml
from groupgt.retrievers import vectors

ROOT = Path(__file__).parents[2]
GOOD = """\
version: 1
groupgt: ">=0.1"
name: trial
seed: 7
convention: coverage
datasets:
  mine:
    corpus: corpus.jsonl
    ground_truth: questions.jsonl
    where: {type: [single, multi]}
  yours:
    corpus: corpus.jsonl
    ground_truth: questions.jsonl
systems:
  plain: bm25
  sweep:
    use: bm25
    with: {stopwords: english}
    matrix:
      k1: [0.9, 1.2]
      b: [0.4, 0.75]
  stored:
    use: results
    with: {path: run.trec}
    only: [mine]
  fused:
    use: rrf
    inputs: ["sweep[k1=0.9,b=0.4]", plain]
    with: {depth: 50}
    matrix:
      k: [10, 60]
  mixed:
    use: convex
    inputs: ["sweep*"]
    with: {normalization: theoretical}
    matrix:
      weights: [[1, 1, 1, 1], [1, 2, 3, 4]]
    on_error: skip
evaluate:
  depth: 20
  k: [1, 3]
  metrics: [recall, ndcg, redundancy]
  primary: ndcg@3
  best:
    strategy: rank
    metrics: [recall@1, ndcg@3]
    max_latency_ms: 10000
  by: [type]
  timed: 2
compare:
  baseline: plain
gate:
  - {system: "sweep*", metric: recall@3, min: 0.1}
  - {system: "fused*", metric: ndcg@3, max_drop: 0.9}
  - {system: "*", dataset: mine, slice: {type: multi}, metric: recall@3, min: 0.0}
  - {system: plain, metric: latency_p95_ms, max: 10000}
output:
  folder: out
  formats: [table, json]
cache: cache
"""
Change = tuple[str, str]
# Parts of the file that several changes replace.
STORED = "use: results\n    with: {path: run.trec}"
BEST = "strategy: rank\n    metrics: [recall@1, ndcg@3]\n    max_latency_ms: 10000"
WEIGHTS = "weights: [[1, 1, 1, 1], [1, 2, 3, 4]]"
GATES = GOOD[GOOD.index("gate:") : GOOD.index("output:")]
COMPARE = "compare:\n  baseline: plain\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GROUPGT_UNSET", raising=False)
    texts = ["ferry times", "ticket prices", "dogs on board", "harbour hours", "ferry prices", "luggage and dogs"]
    rows = [{"doc_id": f"d{number}", "contents": text} for number, text in enumerate(texts)]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    questions: list[dict[str, Any]] = [
        {"qid": "1", "query": "ferry times?", "retrieval_gt": [["d0"]], "type": "single", "year": 2020},
        {"qid": "2", "query": "ticket prices?", "retrieval_gt": [["d1"], ["d4"]], "type": "multi", "year": 2021},
        {"qid": "3", "query": "dogs on board?", "retrieval_gt": [["d2", "d5"]], "type": "single", "year": 2020},
    ]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in questions))
    (tmp_path / "run.trec").write_text("1 Q0 d0 1 1 t\n2 Q0 d1 1 1 t\n3 Q0 d3 1 1 t\n")
    return tmp_path


def changed(*changes: Change, text: str = GOOD) -> str:
    """The good file with each of the old texts replaced by its new one."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def written(folder: Path, text: str) -> Path:
    file = folder / "e.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def told(folder: Path, text: str, **options: Any) -> list[str]:
    """The faults of a file, without the name of its folder."""
    file = written(folder, text)
    try:
        plan(file, **options)
    except groupgt.GroupgtError as error:
        return [fault.removeprefix(f"{file}:").replace(str(folder), "FOLDER") for fault in error.faults]
    return []


def test_the_good_file(folder: Path) -> None:
    assert told(folder, GOOD) == []


# What is changed, where the fault is, the path it names, and words of it.
ONE: list[tuple[str, list[Change], str, str, str]] = [
    # Unknown keys, wherever there are keys.
    ("key of the file", [("seed: 7", "sead: 7")], "4:1", "sead", "did you mean 'seed'"),
    ("key of a dataset", [("    where:", "    were:")], "10:5", "datasets.mine.were", "did you mean 'where'"),
    ("key of a system", [("on_error", "onerror")], "38:5", "systems.mixed.onerror", "did you mean 'on_error'"),
    ("key of with", [("{depth: 50}", "{depht: 50}")], "29:12", "systems.fused.with.depht", "did you mean 'depth'"),
    ("key of a matrix", [("    k: [10", "    kk: [10")], "31:7", "systems.fused.matrix.kk", "did you mean 'k'"),
    ("key of evaluate", [("  depth: 20", "  depht: 20")], "40:3", "evaluate.depht", "did you mean 'depth'"),
    (
        "key of best",
        [("max_latency_ms", "max_latency")],
        "47:5",
        "evaluate.best.max_latency",
        "did you mean 'max_latency_ms'",
    ),
    (
        "key of a labeller",
        [("timed: 2", "labeller: {use: id, wiht: {}}")],
        "49:23",
        "evaluate.labeller.wiht",
        "unknown key; known are use, with",
    ),
    ("key of a policy", [("timed: 2", "policy: {mising: zero}")], "49:20", "evaluate.policy.mising", "unknown field"),
    ("key of compare", [(": plain\ngate", ": plain\n  tset: t\ngate")], "52:3", "compare.tset", "did you mean 'test'"),
    ("key of a gate", [("min: 0.1", "mni: 0.1")], "53:42", "gate.0.mni", "did you mean 'min'"),
    ("key of output", [("folder: out", "foldr: out")], "58:3", "output.foldr", "did you mean 'folder'"),
    ("a key twice", [("seed: 7", "seed: 7\nseed: 8")], "5:1", "seed", "stands twice (first at 4:1)"),
    # Sweeps.
    (
        "matrix and with",
        [("{stopwords: english}", "{k1: 3}")],
        "20:7",
        "systems.sweep.matrix.k1",
        "k1 stands under `with` too; remove one",
    ),
    ("matrix as a list", [("\n      k: [10, 60]", " [10]")], "30:13", "systems.fused.matrix", "found a list"),
    ("empty matrix list", [("k: [10, 60]", "k: []")], "31:10", "systems.fused.matrix.k", "at least one, found nothing"),
    ("no matrix list", [("k: [10, 60]", "k: 10")], "31:10", "systems.fused.matrix.k", "expected a list, found 10"),
    ("a value twice", [("k: [10, 60]", "k: [10, 10]")], "31:", "systems.fused.matrix", "10 stands twice"),
    (
        "a weight twice, spelled otherwise",
        [(WEIGHTS, "weights: [[1, 1, 1, 1], [1.0, 1, 1, 1e0]]")],
        "37:",
        "systems.mixed.matrix",
        "[1,1,1,1] stands twice",
    ),
    (
        "too many",
        [(WEIGHTS, f"{WEIGHTS}\n      depth: [{', '.join(map(str, range(1, 5_002)))}]")],
        "37:7",
        "systems.mixed.matrix",
        "at most 10,000 combinations, found 10,002",
    ),
    (
        "a wrong value on its own line",
        [("[0.4, 0.75]", "\n        - 0.4\n        - high")],
        "23:11",
        "systems.sweep.matrix.b.1",
        "expected a number, found 'high'",
    ),
    (
        "a value out of range",
        [("[0.4, 0.75]", "\n        - 0.4\n        - 75")],
        "23:11",
        "systems.sweep.matrix.b.1",
        "from 0 to 1, found 75",
    ),
    ("a value of nothing", [("[0.4, 0.75]", "[0.4, ~]")], "21:16", "systems.sweep.matrix.b.1", "number, found nothing"),
    ("infinity", [("[0.9, 1.2]", "[0.9, 1e999]")], "20:17", "systems.sweep.matrix.k1.1", "found inf"),
    (
        "one number of a list",
        [(WEIGHTS, "weights:\n        - [1, 1, 1, 1]\n        - [1, 2, x, 4]")],
        "39:18",
        "systems.mixed.matrix.weights.1.2",
        "expected a number, found 'x'",
    ),
    (
        "a negative weight",
        [("[1, 2, 3, 4]", "[1, -2, 3, 4]")],
        "37:35",
        "systems.mixed.matrix.weights.1.1",
        "at least 0",
    ),
    (
        "a path in a matrix",
        [(STORED, "use: results\n    matrix:\n      path:\n        - run.trec\n        - nun.trec")],
        "27:11",
        "systems.stored.matrix.path.1",
        "there is no such file: FOLDER/nun.trec",
    ),
    # Fusions.
    (
        "no inputs",
        [('    inputs: ["sweep*"]\n', "")],
        "33:5",
        "systems.mixed",
        "convex combines other systems; name them as `inputs`",
    ),
    ("an unknown input", [("plain]", "plane]")], "28:37", "systems.fused.inputs.1", "did you mean 'plain'"),
    ("a family", [('"sweep[k1=0.9,b=0.4]"', "sweep")], "28:14", "systems.fused.inputs.0", "no other system is named"),
    (
        "its own family",
        [("plain]", '"fused*"]')],
        "28:37",
        "systems.fused.inputs.1",
        "no other system is named 'fused*'",
    ),
    (
        "not run on a dataset",
        [("plain]", "stored]")],
        "28:37",
        "systems.fused.inputs.1",
        "stored is not run on dataset 'yours'; see its `only`",
    ),
    (
        "too few weights",
        [("{depth: 50}", "{weights: [1]}")],
        "29:21",
        "systems.fused.with.weights",
        "expected 2 numbers, one for each input, found 1",
    ),
    (
        "inputs of a system that combines nothing",
        [("    only: [mine]", "    inputs: [plain]")],
        "25:5",
        "systems.stored.inputs",
        "results combines no other systems; remove this key",
    ),
    # Systems and datasets.
    ("an unknown use", [("plain: bm25", "plain: bm52")], "15:10", "systems.plain.use", "did you mean 'bm25'"),
    ("an unknown dataset", [("[mine]", "[mein]")], "25:12", "systems.stored.only.0", "did you mean 'mine'"),
    ("an unknown dataset, short", [("[mine]", "mein")], "25:11", "systems.stored.only.0", "did you mean 'mine'"),
    ("on_error", [("skip", "skp")], "38:15", "systems.mixed.on_error", "expected fail or skip, found 'skp'"),
    ("a seed of text", [("seed: 7", "seed: '7'")], "4:7", "seed", "expected a whole number, found '7'"),
    ("a seed below 0", [("seed: 7", "seed: -1")], "4:7", "seed", "at least 0, found -1"),
    ("a seed above 32 bits", [("seed: 7", "seed: 4294967296")], "4:7", "seed", "below 4,294,967,296"),
    ("a seed with a point", [("seed: 7", "seed: 7.0")], "4:7", "seed", "expected a whole number, found 7.0"),
    ("a number as a name", [("name: trial", "name: 1e3")], "3:7", "name", "expected text, found 1000.0"),
    (
        "a missing file",
        [("path: run", "path: nun")],
        "24:18",
        "systems.stored.with.path",
        "no such file: FOLDER/nun.trec",
    ),
    (
        "a missing file of one dataset",
        [("run.trec}\n    only: [mine]", "'{dataset}.trec'}\n    only: [mine]")],
        "24:18",
        "systems.stored.with.path",
        "there is no such file: FOLDER/mine.trec",
    ),
    (
        "a missing corpus",
        [("corpus: corpus", "corpus: corpse")],
        "8:13",
        "datasets.mine.corpus",
        "there is no such file: FOLDER/corpse.jsonl",
    ),
    (
        "a missing script",
        [("    where", "    build: make.py\n    where")],
        "10:12",
        "datasets.mine.build",
        "there is no such file: FOLDER/make.py",
    ),
    (
        "an unknown format of results",
        [("run.trec}", "run.trec, format: terc}")],
        "24:36",
        "systems.stored.with.format",
        "did you mean 'trec'",
    ),
    (
        "an unset variable",
        [("corpus: corpus.jsonl", "corpus: corpus.jsonl${env:GROUPGT_UNSET}")],
        "8:13",
        "datasets.mine.corpus",
        "the environment variable GROUPGT_UNSET is not set; set it, or write ${env:GROUPGT_UNSET:-default}",
    ),
    (
        "code that is not allowed",
        [(STORED, 'use: python\n    with: {target: "mine:build"}')],
        "23:10",
        "systems.stored.use",
        "python runs code of yours; allow it with --allow-code",
    ),
    (
        "a needed option",
        [(STORED, "use: results")],
        "23:5",
        "systems.stored.with.path",
        "this key is needed and missing",
    ),
    ("cache of a number", [("cache: cache", "cache: 5")], "60:8", "cache", "expected text, found 5"),
    # What only the data shows.
    ("no such column", [("{type: [", "{tpe: [")], "10:13", "datasets.mine.where", "no column 'tpe'; it has type, year"),
    ("no question left", [("[single, multi]", "[double]")], "10:13", "datasets.mine.where.type", "no question is left"),
    ("where of nothing", [("[single, multi]", "~")], "10:19", "datasets.mine.where.type", "a list, found nothing"),
    ("where as a list", [("{type: [single, multi]}", "[type]")], "10:12", "datasets.mine.where", "found a list"),
    # Metrics and the best.
    ("primary not evaluated", [("primary: ndcg@3", "primary: ndcg@5")], "43:12", "evaluate.primary", "found 'ndcg@5'"),
    ("primary as a list", [("primary: ndcg@3", "primary: [ndcg@3]")], "43:12", "evaluate.primary", "found a list"),
    (
        "best: not evaluated",
        [("recall@1, ndcg@3]", "recall@1, ndcg@5]")],
        "46:25",
        "evaluate.best.metrics.1",
        "expected one of the metrics: recall@1, recall@3, ndcg@1",
    ),
    (
        "best: mean of what should be little",
        [("rank\n    metrics: [recall@1,", "mean\n    metrics: [redundancy@1,")],
        "46:14",
        "evaluate.best.metrics",
        "of redundancy@1 less is; name the others",
    ),
    (
        "best: mean of all",
        [("rank\n    metrics: [recall@1, ndcg@3]", "normalized_mean")],
        "45:5",
        "evaluate.best.metrics",
        "of redundancy@1, redundancy@3 less is; name the others",
    ),
    (
        "best: primary and metrics",
        [("strategy: rank", "strategy: primary")],
        "46:14",
        "evaluate.best.metrics",
        "the strategy primary looks at `primary` alone; remove this key",
    ),
    (
        "best: no primary",
        [("  primary: ndcg@3\n", ""), ("strategy: rank\n    metrics: [recall@1, ndcg@3]\n", "strategy: primary\n")],
        "44:5",
        "evaluate.best",
        "the strategy primary needs `evaluate.primary`",
    ),
    ("best: no latency", [("max_latency_ms: 10000", "max_latency_ms: 0")], "47:21", "evaluate.best.", "number above 0"),
    ("labeller", [("timed: 2", "labeller: ids")], "49:13", "evaluate.labeller.use", "did you mean 'id'"),
    ("timed", [("timed: 2", "timed: -2")], "49:10", "evaluate.timed", "at least 0, found -2"),
    # Comparisons.
    ("an unknown baseline", [("baseline: plain", "baseline: plane")], "51:13", "compare.baseline", "mean 'plain'"),
    ("a pattern as baseline", [("baseline: plain", "baseline: 'pl*'")], "51:13", "compare.baseline", "found 'pl*'"),
    ("a family as baseline", [("baseline: plain", "baseline: sweep")], "51:13", "compare.baseline", "found 'sweep'"),
    ("an unknown test", [(": plain\ngate", ": plain\n  test: z\ngate")], "52:9", "compare.test", "randomization, t, "),
    ("alpha", [(": plain\ngate", ": plain\n  alpha: 1\ngate")], "52:10", "compare.alpha", "a number below 1"),
    # Gates.
    (
        "gate: unknown system",
        [("system: plain", "system: plane")],
        "56:14",
        "gate.3.system",
        "or a pattern, found 'plane'",
    ),
    ("gate: unknown pattern", [('"fused*"', '"fusd*"')], "54:14", "gate.1.system", "or a pattern, found 'fusd*'"),
    ("gate: a family", [('"fused*"', "fused")], "54:14", "gate.1.system", "did you mean 'fused["),
    ("gate: unknown dataset", [("dataset: mine", "dataset: mien")], "55:28", "gate.2.dataset", "did you mean 'mine'"),
    ("gate: no system", [('system: "sweep*", ', "")], "53:5", "gate.0.system", "this key is needed and missing"),
    ("gate: asks nothing", [(", min: 0.1", "")], "53:5", "gate.0", "one of min, max and max_drop, found nothing"),
    ("gate: asks two things", [("min: 0.1", "min: 0.1, max: 1")], "53:5", "gate.0", "found min and max"),
    ("gate: a bound of text", [("min: 0.1", "min: '0.1'")], "53:47", "gate.0.min", "expected a number, found '0.1'"),
    ("gate: a drop below 0", [("max_drop: 0.9", "max_drop: -1")], "54:50", "gate.1.max_drop", "at least 0"),
    ("gate: no baseline", [(COMPARE, "")], "52:50", "gate.1.max_drop", "name it as compare.baseline"),
    ("gate: no such metric", [("metric: recall@3", "metric: recal@3")], "53:32", "gate.0.metric", "mean 'recall'"),
    ("gate: not evaluated", [("metric: recall@3", "metric: recall@5")], "53:32", "gate.0.metric", "found 'recall@5'"),
    ("gate: no cutoff", [("metric: recall@3", "metric: recall")], "53:32", "gate.0.metric", "found 'recall'"),
    (
        "gate: no such latency",
        [("latency_p95_ms", "latency")],
        "56:29",
        "gate.3.metric",
        "or one of build_s, latency_p50",
    ),
    ("gate: latency of files", [("system: plain", "system: stored")], "56:14", "gate.3.system", "have no latency"),
    (
        "gate: latency untimed",
        [("timed: 2", "timed: 0"), ("    max_latency_ms: 10000\n", "")],
        "55:29",
        "gate.3.metric",
        "evaluate.timed is 0",
    ),
    ("gate: latency drops", [("_ms, max:", "_ms, max_drop:")], "56:5", "gate.3", "has a min or max, and no slices"),
    ("gate: no such column", [("{type: multi}", "{tpe: multi}")], "55:", "gate.2.slice", "did you mean 'type'"),
    (
        "gate: no such value",
        [("{type: multi}", "{type: mlti}")],
        "55:48",
        "gate.2.slice.type",
        "there are multi, single",
    ),
    ("gate: no text", [('{system: "fused*", metric: ndcg@3, max_drop: 0.9}', "hello")], "54:5", "gate.1", "a mapping"),
    (
        "gate: unless",
        [("max_drop: 0.9", "min: 0.9, unless: not_significant")],
        "54:58",
        "gate.1.unless",
        "it goes with max_drop",
    ),
    ("gate: unless what", [("max_drop: 0.9", "max_drop: 0.9, unless: x")], "54:63", "gate.1.unless", "found 'x'"),
    ("an unknown format", [("[table, json]", "[table, jsn]")], "59:20", "output.formats.1", "did you mean 'json'"),
]


@pytest.mark.parametrize(
    ("changes", "place", "path", "words"), [each[1:] for each in ONE], ids=[each[0] for each in ONE]
)
def test_one_fault_is_one_line_at_its_place(
    folder: Path, changes: list[Change], place: str, path: str, words: str
) -> None:
    found = told(folder, changed(*changes))
    assert len(found) == 1, found
    assert found[0].startswith(place), found
    assert found[0].split(": ")[1].startswith(path), found
    assert words in found[0], found


def test_a_circle_of_fusions(folder: Path) -> None:
    systems = "  one: {use: rrf, inputs: [plain, two]}\n  two: {use: rrf, inputs: [one]}\n"
    found = told(folder, changed(("  stored:\n", f"{systems}  stored:\n")))
    assert found == ["22:27: systems.one.inputs: a fusion of itself: one → two → one"]


def test_a_script_that_makes_a_file(folder: Path) -> None:
    (folder / "make.py").write_text("raise SystemExit('nothing to fetch')\n")
    text = changed(("corpus: corpus.jsonl\n", "corpus: made.jsonl\n    build: make.py\n"))
    assert told(folder, text) == [
        "8:13: datasets.mine.corpus: FOLDER/made.jsonl is not there yet; a script makes it: "
        "run it (python FOLDER/make.py), or add --allow-code"
    ]
    assert told(folder, text, allow_code=True) == [
        "9:12: datasets.mine.build: FOLDER/make.py ended with status 1: nothing to fetch"
    ]
    (folder / "make.py").write_text("")
    assert told(folder, text, allow_code=True) == [
        "9:12: datasets.mine.build: expected FOLDER/make.py to make FOLDER/made.jsonl, and it did not"
    ]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:x", "there is no module 'no_such_module', beside the file or installed"),
        ("own_search:biuld", "own_search has no 'biuld' (did you mean 'build'?)"),
        ("own search", "expected module:name, found 'own search'"),
    ],
)
def test_code_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, words: str) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (folder / "own_search.py").write_text("def build():\n    return None\n")
    text = changed((STORED, f"use: python\n    with: {{target: '{target}'}}"))
    assert told(folder, text, allow_code=True) == [f"24:20: systems.stored.with.target: {words}"]


@pytest.mark.parametrize(
    ("stored", "place", "words"),
    [
        ("use: lsa", "23:10: systems.stored.use", "lsa needs sklearn: pip install 'groupgt[retrieval]'"),
        ("use: ann\n    with: {model: x}", "23:10: systems.stored.use", "needs usearch: pip install 'groupgt[ann]'"),
        ("use: dense\n    with: {model: x}", "24:19: systems.stored.with.model", "pip install 'groupgt[dense]'"),
    ],
)
def test_extras_that_are_not_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stored: str, place: str, words: str
) -> None:
    for module in (plugins, vectors):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    found = told(folder, changed((STORED, stored)))
    assert found[0].startswith(f"{place}: ")
    assert words in found[0]


def test_ten_faults_of_values_in_one_go(folder: Path) -> None:
    text = changed(
        ('">=0.1"', '">=99"'),
        ("seed: 7", "seed: x"),
        ("corpus: corpus", "corpus: corpse"),
        ("plain: bm25", "plain: bm52"),
        ("{stopwords: english}", "{stopwords: klingon}"),
        ("path: run", "path: nun"),
        ("max_latency_ms: 10000", "max_latency_ms: 0"),
        ("k: [10, 60]", "k: [10, ten]"),
        ("on_error: skip", "on_error: skp"),
        ("depth: 20", "depth: 0"),
        ("[table, json]", "[table, jsn]"),
    )
    places = ["2:10", "4:7", "8:13", "15:10", "18:23", "24:18", "31:15", "38:15", "40:10", "47:21", "59:20"]
    assert sorted(each.split(": ")[0] for each in told(folder, text)) == sorted(places)


def test_ten_faults_of_names_in_one_go(folder: Path) -> None:
    text = changed(
        ("plain]", "plane]"),
        ("recall@1, ndcg@3]", "recal@1, ndcg@5]"),
        ("baseline: plain", "baseline: plane"),
        ('"sweep*", metric', '"swep*", metric'),
        ("metric: ndcg@3, max_drop", "metric: ndcg@5, max_drop"),
        ("dataset: mine", "dataset: mien"),
        ("max: 10000}", "max: 10000, min: 1}"),
        ("primary: ndcg@3", "primary: ndcg@30"),
        ("timed: 2", "labeller: ids"),
    )
    places = ["28:37", "43:12", "46:15", "46:24", "49:13", "51:13", "53:14", "54:32", "55:28", "56:5"]
    assert sorted(each.split(": ")[0] for each in told(folder, text)) == sorted(places)


# What follows from a fault is not told: each of these files has one, and its line is the only one.
CONSEQUENCES: dict[str, tuple[list[Change], str]] = {
    "an unknown key of a matrix": ([("k1: [0.9, 1.2]", "k3: [0.9, 1.2]")], "20:7"),
    "an empty list of a matrix": ([("b: [0.4, 0.75]", "b: []")], "21:10"),
    "a matrix that is no list": ([("b: [0.4, 0.75]", "b: 0.4")], "21:10"),
    "a matrix that is no mapping": ([("\n      k1: [0.9, 1.2]\n      b: [0.4, 0.75]", " 5")], "19:13"),
    "a value twice": ([("[0.4, 0.75]", "[0.4, 0.40]")], "2"),
    "too many combinations": ([("[0.4, 0.75]", f"[{', '.join(str(n / 10_000) for n in range(5_001))}]")], "20:7"),
    "a system that is none": ([("plain: bm25", "plain: 5")], "15:10"),
    "a dataset that is none": (
        [("\n    corpus: corpus.jsonl\n    ground_truth: questions.jsonl\n    where:", " 5\n#")],
        "7:",
    ),
    "no datasets": ([(GOOD[GOOD.index("\n  mine:") : GOOD.index("systems:")], " {}\n")], "6:11"),
    "a convention": ([("convention: coverage", "convention: coverge")], "5:13"),
    "a metric": ([("[recall, ndcg,", "[recal, ndcg,")], "42:13"),
    "a cutoff": ([("k: [1, 3]", "k: [1, x]")], "41:10"),
    "cutoffs of nothing": ([("k: [1, 3]", "k: ~")], "41:6"),
    "a strategy": ([("strategy: rank", "strategy: rnk")], "45:15"),
    "no name of a baseline": ([("baseline: plain", "alpha: 0.1")], "51:3"),
    "a baseline of a number": ([("baseline: plain", "baseline: 5")], "51:13"),
    "a comparison of text": ([("compare:\n  baseline: plain", "compare: plain")], "50:10"),
    "an unset variable in a path": ([("{path: run.trec}", "{path: '${env:GROUPGT_UNSET}'}")], "24:18"),
    "an unset variable as a name": ([("name: trial", "name: ${env:GROUPGT_UNSET}")], "3:7"),
    "a value of a slice": ([("{type: multi}", "{type: [multi]}")], "55:48"),
    "a value of where": ([("[single, multi]", "[{a: b}]")], "10:20"),
    "an input that weights count": ([("plain]", "plane]"), ("{depth: 50}", "{weights: [1, 2]}")], "28:37"),
    "weights of two systems": ([(WEIGHTS, "weights:\n        - [1, 1, 1, 1]\n        - [1, 2, 4]")], "39:11"),
}


@pytest.mark.parametrize("name", CONSEQUENCES)
def test_nothing_is_said_of_what_follows_from_a_fault(folder: Path, name: str) -> None:
    changes, place = CONSEQUENCES[name]
    found = told(folder, changed(*changes))
    assert len(found) == 1, found
    assert found[0].startswith(place), found


def test_a_system_at_fault_hides_no_fault_of_others(folder: Path) -> None:
    text = changed(
        ("{depth: 50}", "{depth: x}"), ("baseline: plain", "baseline: plane"), ("min: 0.1", "min: 0.1, max: 1")
    )
    assert sorted(each.split(": ")[0] for each in told(folder, text)) == ["29:19", "51:13", "53:5"]


def test_a_metric_that_is_none_does_not_end_the_check(folder: Path) -> None:
    text = changed(
        ("strategy: rank", "strategy: mean"), ("[recall@1,", "[recal@1,"), ("baseline: plain", "baseline: plane")
    )
    assert sorted(each.split(": ")[0] for each in told(folder, text)) == ["46:15", "51:13"]


# Values that a file may hold, and that no traceback answers.
HOSTILE = {
    "a path with a null": (("path: run.trec", 'path: "run\\0.trec"'), 24),
    "a corpus with a null": (("corpus: corpus.jsonl", 'corpus: "corpus\\0.jsonl"'), 8),
    "a cache with a null": (("cache: cache", 'cache: "ca\\0che"'), 60),
    "an address without an end": ((STORED, "use: http\n    with: {url: 'http://[::1/'}"), 24),
    "an address without a number": ((STORED, "use: http\n    with: {url: 'http://localhost:port/'}"), 24),
    "an infinite bound": (("min: 0.1", "min: 1e999"), 53),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_values(folder: Path, name: str) -> None:
    change, line = HOSTILE[name]
    if "http" in change[1]:
        pytest.importorskip("urllib3", reason="the extra groupgt[http] is not installed")
    found = told(folder, changed(change))
    assert len(found) == 1, found
    assert found[0].startswith(f"{line}:"), found


@pytest.mark.parametrize(
    ("raw", "start"),
    [
        (b"", "1:1: the file is empty"),
        (b"# nothing\n", "1:1: the file is empty"),
        (b"- version: 1\n", "1:1: expected a mapping"),
        (GOOD.replace("seed", "\tseed").encode(), "4:1: not YAML"),
        (GOOD.encode("utf-16"), "1:1: expected UTF-8"),
        (GOOD.encode() + b"\x00", "61:1: expected text, found the control character"),
        (b"a: " + b"[" * 1000, "1:43: expected at most 40 levels"),
        (b"- " * 1000 + b"x", "1:81: expected at most 40 levels"),
    ],
)
def test_what_is_no_experiment_file(folder: Path, raw: bytes, start: str) -> None:
    file = folder / "e.yaml"
    file.write_bytes(raw)
    with pytest.raises(groupgt.ConfigError) as caught:
        plan(file)
    assert str(caught.value).removeprefix(f"{file}:").startswith(start)


@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf" + GOOD.encode(), GOOD.replace("\n", "\r\n").encode()])
def test_marks_and_line_ends_of_other_editors(folder: Path, raw: bytes) -> None:
    file = folder / "e.yaml"
    file.write_bytes(raw)
    assert plan(file)


@pytest.mark.parametrize(
    ("settings", "starts"),
    [
        (["evaluate.k"], ["--set evaluate.k: expected path.to.key=value"]),
        (["=5"], ["--set =5: expected path.to.key=value"]),
        (["gate.9.min=1"], ["--set gate.9.min: there is nothing at gate.9"]),
        (["gate.0=~"], ["--set gate.0: gate.0: expected a mapping, found nothing"]),
        (["systems.sweep.matrix.k1.2=3"], ["--set systems.sweep.matrix.k1.2: expected a key of a mapping, or"]),
        (["systems.sweep.matrix.k1.x=3"], ["--set systems.sweep.matrix.k1.x: expected a key of a mapping, or"]),
        (
            ["systems.fused.matrix.k.0=x"],
            ["--set systems.fused.matrix.k.0: systems.fused.matrix.k.0: expected a whole"],
        ),
        (["systems.fused.with.deph=5"], ["--set systems.fused.with.deph: systems.fused.with.deph: unknown option"]),
        (["seed=x", "nam=x"], ["--set nam: nam: unknown key", "--set seed: seed: expected a whole number"]),
        (["name=[a"], ["--set name:1:3: not YAML"]),
        (["name=&a b"], ["--set name:1:1: anchors"]),
        (["cache=${env:GROUPGT_UNSET}"], ["--set cache:1:1: cache: the environment variable GROUPGT_UNSET is not set"]),
        (["output.folder.x=5"], ["--set output.folder.x: expected a key of a mapping"]),
        (["compare.baseline=plane"], ["--set compare.baseline: compare.baseline: expected plain"]),
        (["gate.2.slice.type=mlti"], ["--set gate.2.slice.type: gate.2.slice.type: no question of dataset 'mine'"]),
        (["compare=~"], ["54:50: gate.1.max_drop: a drop is against a baseline"]),
    ],
)
def test_faults_of_changes(folder: Path, settings: list[str], starts: Sequence[str]) -> None:
    found = sorted(told(folder, GOOD, changes=settings))
    for each, start in zip(found, starts):
        assert each.startswith(start), found
    assert len(found) == len(starts), found


@pytest.mark.parametrize("setting", ["name=", "a.b.c=1", "evaluate..k=5", "systems.sweep.wiht.k1=1"])
def test_a_change_at_fault_is_named(folder: Path, setting: str) -> None:
    name = setting.partition("=")[0]
    found = told(folder, GOOD, changes=[setting])
    assert len(found) == 1, found
    assert found[0].startswith(f"--set {name}"), found


@pytest.mark.parametrize("pattern", ["sweep", "swep*", "SWEEP*", "", "[*", "fused[[]k=10]"])
def test_only_what_there_is(folder: Path, pattern: str) -> None:
    found = told(folder, GOOD, only=[pattern])
    assert len(found) == 1
    assert found[0].startswith(f"--only {pattern}: no system has this name")


def test_every_pattern_without_a_match_is_told(folder: Path) -> None:
    found = told(folder, GOOD, only=["swep*", "plain", "fusd*"])
    assert [each.split(":")[0] for each in found] == ["--only swep*", "--only fusd*"]


SECRET = "wq7Gk2hTz"


@pytest.mark.parametrize(
    "system",
    [
        "use: http\n    with: {url: 'http://u:SECRET@127.0.0.1:9/?k=SECRET', retries: 0}",
        "use: http\n    with: {url: 'http://127.0.0.1:9/', headers: {A: \"SECRET\\n\"}, retries: 0}",
        "use: http\n    with: {retries: 0}\n    matrix: {url: ['http://127.0.0.1:9/?k=SECRET']}",
        "use: http\n    with: {url: 'ftp://u:SECRET@127.0.0.1/'}",
        "use: http\n    with: {url: 'http://u:SECRET@127.0.0.1:port/'}",
        "use: http\n    with: {url: 'http://127.0.0.1/', timeout: 'SECRET'}",
    ],
    ids=["address", "header", "matrix", "scheme", "port", "type"],
)
def test_no_secret_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], system: str
) -> None:
    pytest.importorskip("urllib3")
    monkeypatch.setenv("GROUPGT_SECRET", SECRET)
    system = system.replace("SECRET", "${env:GROUPGT_SECRET}") + "\n    on_error: skip"
    file = written(folder, changed((STORED, system), (GATES, "")))
    with suppress(SystemExit):
        main(["run", str(file), "--junit", str(folder / "gates.xml")])
    said = capsys.readouterr()
    assert SECRET not in said.out + said.err
    for path in folder.rglob("*"):
        assert SECRET not in path.name
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "import sys; sys.exit()", "raise SystemExit('bye')"])
def test_code_that_ends_the_process_does_not_pass(folder: Path, code: str) -> None:
    (folder / "ending.py").write_text(f"def search(queries, k):\n    {code}\n")
    text = changed((STORED, "use: python\n    with: {target: 'ending:search'}"), (GATES, ""))
    with pytest.raises(SystemExit) as end:
        main(["run", str(written(folder, text)), "--allow-code"])
    assert end.value.code == 2


def test_long_values_make_no_long_names_of_files(folder: Path) -> None:
    text = changed(
        ("table, json", "table, runs"), ("  plain: bm25", f"  plain: bm25\n  {'y' * 100}: bm25"), (GATES, "")
    )
    (folder / "own_ranking.py").write_text("def search(queries, k):\n    return [['d0'] for each in queries]\n")
    long = f"use: python\n    with: {{target: 'own_ranking:search'}}\n    matrix: {{version: [{'z' * 300}]}}"
    outcome = groupgt.run_experiment(written(folder, changed((STORED, long), text=text)), allow_code=True)
    assert outcome.folder is not None
    files = list(outcome.folder.rglob("*.trec"))
    assert len(files) == sum(map(len, outcome.evaluations.values()))
    assert max(len(file.name) for file in files) < 110


# --- The JSON Schema.

SCHEMA = json.loads((ROOT / "configs" / "groupgt.schema.json").read_text(encoding="utf-8"))


def objections(file: Path) -> list[str]:
    """What the JSON Schema says against a file."""
    jsonschema = pytest.importorskip("jsonschema", reason="the extra groupgt[checks] is not installed")
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(read_yaml(file).value)]


def test_the_schema_that_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    main(["schema"])
    assert capsys.readouterr().out == (ROOT / "configs" / "groupgt.schema.json").read_text(encoding="utf-8")
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
    "one format": [("[table, json]", "html")],
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
