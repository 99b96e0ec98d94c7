"""Faults of `systems`: sweeps, options, fusions, code and extras, each fault once, at its place, in its words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from groupgt import plugins
from groupgt.retrievers import vectors
from tests.experiment.faulty_files import (
    GOOD,
    STORED,
    WEIGHTS,
    Fault,
    changed,
    check_one,
    told,
)
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

FAULTS: list[Fault] = [
    # Sweeps.
    (
        "matrix and with",
        [("{stopwords: english}", "{k1: 3}")],
        "20:7",
        "systems.sweep.matrix.k1",
        "k1 is also set under `with`; keep only one",
    ),
    ("matrix as a list", [("\n      k: [10, 60]", " [10]")], "30:13", "systems.fused.matrix", "found a list"),
    ("empty matrix list", [("k: [10, 60]", "k: []")], "31:10", "systems.fused.matrix.k", "at least one, found nothing"),
    ("no matrix list", [("k: [10, 60]", "k: 10")], "31:10", "systems.fused.matrix.k", "expected a list, found 10"),
    ("a value twice", [("k: [10, 60]", "k: [10, 10]")], "31:", "systems.fused.matrix", "duplicate value 10"),
    (
        "a weight twice, spelled otherwise",
        [(WEIGHTS, "weights: [[1, 1, 1, 1], [1.0, 1, 1, 1e0]]")],
        "37:",
        "systems.mixed.matrix",
        "duplicate value [1,1,1,1]",
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
        "file not found: FOLDER/nun.trec",
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
        "stored is not run on dataset 'yours'; see its `only` key",
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
        "results does not combine other systems; remove this key",
    ),
    # Of systems.
    ("an unknown use", [("plain: bm25", "plain: bm52")], "15:10", "systems.plain.use", "did you mean 'bm25'"),
    ("an unknown dataset", [("[mine]", "[mein]")], "25:12", "systems.stored.only.0", "did you mean 'mine'"),
    ("an unknown dataset, short", [("[mine]", "mein")], "25:11", "systems.stored.only.0", "did you mean 'mine'"),
    ("on_error", [("skip", "skp")], "38:15", "systems.mixed.on_error", "expected fail or skip, found 'skp'"),
    (
        "a missing file",
        [("path: run", "path: nun")],
        "24:18",
        "systems.stored.with.path",
        "file not found: FOLDER/nun.trec",
    ),
    (
        "a missing file of one dataset",
        [("run.trec}\n    only: [mine]", "'{dataset}.trec'}\n    only: [mine]")],
        "24:18",
        "systems.stored.with.path",
        "file not found: FOLDER/mine.trec",
    ),
    (
        "an unknown format of results",
        [("run.trec}", "run.trec, format: terc}")],
        "24:36",
        "systems.stored.with.format",
        "did you mean 'trec'",
    ),
    (
        "a version of what is ours",
        [("plain: bm25", "plain: {use: bm25, version: a}")],
        "15:22",
        "systems.plain.version",
        "bm25 needs no version",
    ),
    (
        "a version among the options",
        [(STORED, 'use: http\n    with: {url: "http://127.0.0.1/", version: a}')],
        "24:38",
        "systems.stored.with.version",
        "belongs next to `use`, not among the options",
    ),
    (
        "a needed option",
        [(STORED, "use: results")],
        "23:5",
        "systems.stored.with.path",
        "required key is missing",
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


def test_a_circle_of_fusions(folder: Path, snapshot: Snapshot) -> None:
    systems = "  one: {use: rrf, inputs: [plain, two]}\n  two: {use: rrf, inputs: [one]}\n"
    found = told(folder, changed(("  stored:\n", f"{systems}  stored:\n")))
    snapshot(found)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("no_such_module:x", "module 'no_such_module' is neither next to the file nor installed"),
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


@pytest.mark.parametrize("pattern", ["sweep", "swep*", "SWEEP*", "", "[*", "fused[[]k=10]"])
def test_only_what_there_is(folder: Path, pattern: str) -> None:
    found = told(folder, GOOD, only=[pattern])
    assert len(found) == 1
    assert found[0].startswith(f"--only {pattern}: no system has this name")


def test_every_pattern_without_a_match_is_told(folder: Path) -> None:
    found = told(folder, GOOD, only=["swep*", "plain", "fusd*"])
    assert [each.split(":")[0] for each in found] == ["--only swep*", "--only fusd*"]
