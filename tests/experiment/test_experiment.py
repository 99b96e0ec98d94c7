"""Experiment files: every fault at once, none hidden by another or following from another, and no secret is told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.experiment.experiment import load
from tests.experiment.faulty_files import (
    GATES,
    GOOD,
    STORED,
    WEIGHTS,
    Change,
    Fault,
    changed,
    check_one,
    told,
    written,
)

pytestmark = pytest.mark.slow


def test_the_good_file(folder: Path) -> None:
    assert told(folder, GOOD) == []


FAULTS: list[Fault] = [
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
        "unknown key; known keys: use, with",
    ),
    ("key of a policy", [("timed: 2", "policy: {mising: zero}")], "49:20", "evaluate.policy.mising", "unknown field"),
    ("policy at the top", [("seed: 7", "seed: 7\npolicy: trec")], "5:1", "policy", "it belongs in evaluate.policy"),
    (
        "metrics at the top",
        [("seed: 7", "seed: 7\nmetrics: [map]")],
        "5:1",
        "metrics",
        "it belongs in evaluate.metrics or in compare.metrics",
    ),
    (
        "policy of compare",
        [(": plain\ngate", ": plain\n  policy: trec\ngate")],
        "52:3",
        "compare.policy",
        "unknown key; it belongs in evaluate.policy",
    ),
    ("seed of compare", [(": plain\ngate", ": plain\n  seed: 3\ngate")], "52:3", "compare.seed", "at the top level"),
    ("format of output", [("folder: out", "format: csv")], "58:3", "output.format", "did you mean 'formats'"),
    ("key of compare", [(": plain\ngate", ": plain\n  tset: t\ngate")], "52:3", "compare.tset", "did you mean 'test'"),
    ("key of a gate", [("min: 0.1", "mni: 0.1")], "53:42", "gate.0.mni", "did you mean 'min'"),
    ("key of output", [("folder: out", "foldr: out")], "58:3", "output.foldr", "did you mean 'folder'"),
    ("a key twice", [("seed: 7", "seed: 7\nseed: 8")], "5:1", "seed", "duplicate key (first at 4:1)"),
    # Of the file.
    ("a seed of text", [("seed: 7", "seed: '7'")], "4:7", "seed", "expected a whole number, found '7'"),
    ("a seed below 0", [("seed: 7", "seed: -1")], "4:7", "seed", "at least 0, found -1"),
    ("a seed above 32 bits", [("seed: 7", "seed: 4294967296")], "4:7", "seed", "below 4,294,967,296"),
    ("a seed with a point", [("seed: 7", "seed: 7.0")], "4:7", "seed", "expected a whole number, found 7.0"),
    ("a number as a name", [("name: trial", "name: 1e3")], "3:7", "name", "expected text, found 1000.0"),
    (
        "an unset variable",
        [("corpus: corpus.jsonl", "corpus: corpus.jsonl${env:GROUPGT_UNSET}")],
        "8:13",
        "datasets.mine.corpus",
        "the environment variable GROUPGT_UNSET is not set; set it, or write ${env:GROUPGT_UNSET:-default}",
    ),
    ("cache of a number", [("cache: cache", "cache: 5")], "60:8", "cache", "expected text, found 5"),
    # Of metrics.
    ("primary not evaluated", [("primary: ndcg@3", "primary: ndcg@5")], "43:12", "evaluate.primary", "found 'ndcg@5'"),
    ("primary as a list", [("primary: ndcg@3", "primary: [ndcg@3]")], "43:12", "evaluate.primary", "found a list"),
    ("labeller", [("timed: 2", "labeller: ids")], "49:13", "evaluate.labeller.use", "did you mean 'id'"),
    ("timed", [("timed: 2", "timed: -2")], "49:10", "evaluate.timed", "at least 0, found -2"),
    # Comparisons.
    ("an unknown baseline", [("baseline: plain", "baseline: plane")], "51:13", "compare.baseline", "mean 'plain'"),
    ("a pattern as baseline", [("baseline: plain", "baseline: 'pl*'")], "51:13", "compare.baseline", "found 'pl*'"),
    ("a family as baseline", [("baseline: plain", "baseline: sweep")], "51:13", "compare.baseline", "found 'sweep'"),
    ("an unknown test", [(": plain\ngate", ": plain\n  test: z\ngate")], "52:9", "compare.test", "randomization, t, "),
    ("alpha", [(": plain\ngate", ": plain\n  alpha: 1\ngate")], "52:10", "compare.alpha", "a number below 1"),
    # Of output.
    ("an unknown format", [("[table, json]", "[table, jsn]")], "59:20", "output.formats.1", "did you mean 'json'"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_one_fault_is_one_line_at_its_place(folder: Path, fault: Fault) -> None:
    check_one(folder, fault)


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
    found = told(folder, changed(change))
    assert len(found) == 1, found
    assert found[0].startswith(f"{line}:"), found


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


# --- A smaller file, without anything but what is needed.

SMALL = """\
version: 1
groupgt: ">=0.1"
name: trial
convention: coverage
datasets:
  mine: {corpus: corpus.jsonl, ground_truth: questions.jsonl}
systems:
  bm25: {use: bm25, with: {k1: 0.9}}
  stored: {use: results, with: {path: "run.trec"}}
evaluate:
  k: [1, 3]
  metrics: [recall, ndcg]
  primary: ndcg@3
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "ferry times"}\n')
    (tmp_path / "questions.jsonl").write_text('{"qid": "1", "query": "ferry?", "retrieval_gt": [["a"]]}\n')
    (tmp_path / "run.trec").write_text("1 Q0 a 1 1 t\n")
    return tmp_path


def loaded(small: Path, text: str) -> str:
    """The faults of a file, or nothing."""
    file = small / "e.yaml"
    file.write_text(text)
    try:
        load(file)
    except groupgt.ConfigError as error:
        return str(error)
    return ""


def test_a_small_file(small: Path) -> None:
    assert loaded(small, SMALL) == ""


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("version: 1", "version: 2", "1:10", "version: expected 1, found 2"),
        ("version: 1\n", "", "1:1", "version: required key is missing"),
        ("version: 1", "version: one", "1:10", "expected a whole number, found 'one'"),
        ('">=0.1"', '">=99"', "2:10", "the file needs >=99"),
        ('">=0.1"', '"==0.1"', "2:10", "expected a minimum version"),
        ("name: trial", "name: [a]", "3:7", "name: expected text, found a list"),
        ("name: trial", "name: ../x", "3:7", "expected a name made up of letters"),
        ("name: trial", "nam: trial", "3:1", "did you mean 'name'"),
        ("coverage", "coverge", "4:13", "did you mean 'coverage'"),
        ("corpus.jsonl", "corpse.jsonl", "6:18", "file not found"),
        ("{corpus: corpus.jsonl, ground", "{ground", "8:9", "has no corpus"),
        ("ground_truth: questions.jsonl", "ground_truth: 5", "6:46", "expected text, found 5"),
        ("use: bm25", "use: bm52", "8:15", "did you mean 'bm25'"),
        ("{use: bm25, with: {k1: 0.9}}", "bm25", "", ""),
        ("{use: bm25, with: {k1: 0.9}}", "5", "8:9", "expected a mapping, found 5"),
        ("k1: 0.9", "k: 0.9", "8:28", "known options: k1, b, variant"),
        ("k1: 0.9", "k1: '0.9'", "8:32", "expected a number, found '0.9'"),
        ("k1: 0.9", "b: 2", "8:31", "from 0 to 1, found 2"),
        ("k1: 0.9", "variant: okapi", "8:37", "expected lucene"),
        ("k1: 0.9", "stopwords: klingon", "8:39", "expected none"),
        ('path: "run.trec"', 'path: "nun.trec"', "9:39", "file not found"),
        ('path: "run.trec"', "", "9:32", "path: required key is missing"),
        ("k: [1, 3]", "k: [0, 3]", "11:7", "at least 1, found 0"),
        ("k: [1, 3]", "k: [1.5]", "11:7", "expected a whole number, found 1.5"),
        ("k: [1, 3]", "k: 3", "", ""),
        ("[recall, ndcg]", "[recal, ndcg]", "12:13", "did you mean 'recall'"),
        ("[recall, ndcg]", "[]", "12:12", "at least one"),
        ("primary: ndcg@3", "primary: ndcg@5", "13:12", "expected one of the metrics"),
        ("primary: ndcg@3", "primary: ndcg@0", "13:12", "at least 1"),
        ("primary: ndcg@3", "policy: {missing: skp}", "13:", "did you mean 'skip'"),
        ("primary: ndcg@3", "policy: trec", "", ""),
        ("primary: ndcg@3", "labeller: ids", "13:13", "did you mean 'id'"),
        ("primary: ndcg@3", "depth: -1", "13:10", "at least 1"),
        ("primary: ndcg@3", "depht: 5", "13:3", "did you mean 'depth'"),
        ("evaluate:", "output: {formats: [tabel]}\nevaluate:", "10:20", "did you mean 'table'"),
        ("evaluate:", "seed: x\nevaluate:", "10:7", "expected a whole number"),
        ("systems:\n", "systems: {}\nx:\n", "7:10", "systems: expected at least one"),
    ],
)
def test_faults_have_places(small: Path, old: str, new: str, place: str, words: str) -> None:
    assert old in SMALL
    told = loaded(small, SMALL.replace(old, new, 1))
    if not place:
        assert told == ""
        return
    assert f"e.yaml:{place}" in told
    assert words in told


def test_a_section_without_a_required_key_is_left_out_and_the_rest_is_checked(folder: Path) -> None:
    text = changed(
        ("version: 1\n", ""), ("  metrics: [recall, ndcg, redundancy]\n", ""), ("strategy: rank", "strategy: no")
    )
    text = changed(
        ("    ground_truth: questions.jsonl\n    where", "    where"), ("baseline: plain", "baseline: pain"), text=text
    )
    found = [fault.split(": ", 1)[1] for fault in told(folder, text)]
    assert [fault.split(":")[0] for fault in found] == [
        "version", "datasets.mine.ground_truth", "evaluate.metrics", "evaluate.best.strategy", "compare.baseline"
    ]  # fmt: skip


def test_all_faults_of_a_file_in_one_go(small: Path) -> None:
    text = SMALL.replace("coverage", "coverge").replace("use: bm25", "use: bm52").replace("k: [1, 3]", "k: [0, 3]")
    text = text.replace("recall, ndcg", "recal, ndcg").replace("primary:", "primry:") + "extra: 1\nname: again\n"
    told = loaded(small, text)
    for words in ("coverge", "bm52", "found 0", "recal", "primry", "extra", "duplicate key"):
        assert words in told, words
    assert len(told.splitlines()) == 7


def test_only_restricts_systems_to_data_sets(small: Path) -> None:
    text = SMALL.replace("with: {k1: 0.9}}", "only: [yours]}")
    assert "expected mine, found 'yours'" in loaded(small, text)


def test_names_of_entries_at_fault_are_known_to_those_who_name_them(tmp_path: Path) -> None:
    (tmp_path / "experiment.yaml").write_text(
        "version: 1\nname: slips\nconvention: coverage\n"
        "datasets: {one: {ground_truth: qa.jsonl}}\n"
        "systems: {bm25: {use: bm25, with: {k1: -1}}}\n"
        "evaluate: {metrics: [recall@5]}\n"
        "compare: {baseline: bm52}\n"
        "gate: [{system: mine, metric: latency_p95, max: 5}]\n"
    )
    with pytest.raises(groupgt.GroupgtError) as told:
        groupgt.run_experiment(tmp_path / "experiment.yaml")
    for words in (
        "compare.baseline: expected bm25, found 'bm52' (did you mean 'bm25'?)",
        "gate.0.system: expected bm25 or a pattern, found 'mine'",
        "cost_p95 (did you mean 'latency_p95_ms'",
    ):
        assert words in str(told.value)
