"""The paragraph on methods names everything that decides a number, and cites what it uses."""

from __future__ import annotations

import re

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.tests import CORRECTIONS, TESTS
from groupgt.metrics.catalogue import CATALOGUE
from groupgt.report import methods
from groupgt.results.manifest import Manifest

TRUTH = {f"q{number}": {"a": 2, "b": 1} for number in range(12)}
RUNS = {
    "one": {qid: ["a"] for qid in TRUTH},
    "two": {qid: ["x"] * (place % 3) + ["a"] for place, qid in enumerate(TRUTH)},
    "three": {qid: ["x"] * (place % 2) + ["b", "a"] for place, qid in enumerate(list(TRUTH)[:9])},
}


def test_everything_is_named() -> None:
    table = groupgt.compare(TRUTH, RUNS, ["ndcg@10", "map(level=2)"], resamples=200, seed=3, policy={"missing": "skip"})
    text = str(table.methods)
    truth = next(iter(table.evaluations.values())).truth
    for part in (
        *("3 systems", "ndcg.trec(gain=linear)@10", "map.trec(level=2)", "trec convention", "12 queries"),
        *(truth.digest[:12], "missing=skip", "randomization test with 200 resamples (seed 3)", "compared with one"),
        *("significance level of 0.05", "2 comparisons of a metric by Holm's method", "95% confidence interval"),
        f"groupgt {groupgt.__version__}",
    ):
        assert part in text, part
    assert text.count(". ") == 1
    keys = re.findall(r"@\w+\{(\w+),", table.methods.bibtex)
    assert keys == sorted({"jarvelin2002", "smucker2007", "holm1979", "efron1993", "wilson1927"})


@pytest.mark.parametrize("test", ["randomization", "bootstrap"])
@pytest.mark.parametrize("correction", [None, *CORRECTIONS])
@pytest.mark.parametrize("pairs", [False, True])
def test_every_test_and_correction_is_described(test: str, correction: str | None, pairs: bool) -> None:
    table = groupgt.compare(
        TRUTH,
        RUNS,
        ["mrr"],
        test=test,  # type: ignore[arg-type]
        correction=correction,  # type: ignore[arg-type]
        pairs=pairs,
        resamples=50,
    )
    text = str(table.methods)
    assert TESTS[test].title in text
    family = "step-down maximum" if pairs and correction is None and test == "randomization" else correction or "holm"
    assert methods.CORRECTIONS[family] in text
    assert set(methods.OF_CORRECTION.get(family, ())) <= set(re.findall(r"@\w+\{(\w+),", table.methods.bibtex))


def test_one_run_is_not_compared() -> None:
    table = groupgt.compare(TRUTH, RUNS, ["mrr"], resamples=10).only(["one"])
    assert "was compared" in methods.methods_of(table)


def test_what_is_cited_exists() -> None:
    for table in (methods.OF_TEST, methods.OF_CORRECTION, methods.OF_METRIC):
        assert {key for keys in table.values() for key in keys} <= set(methods.REFERENCES)
    assert {name.partition(".")[0] for name in methods.OF_METRIC} <= set(CATALOGUE)
    assert set(methods.OF_TEST) == set(TESTS)
    for key, (author, title, where, year) in methods.REFERENCES.items():
        assert author
        assert title
        assert where
        assert key.endswith(year)


def test_in_the_shell(tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "t.qrels").write_text("q 0 a 1\np 0 a 1\n")
    for name, docs in (("one", "ax"), ("two", "xa")):
        lines = [f"{qid} Q0 {doc} {rank} {9 - rank} t\n" for qid in "qp" for rank, doc in enumerate(docs, 1)]
        (folder / f"{name}.run").write_text("".join(lines))
    main(["compare", *(str(folder / name) for name in ("t.qrels", "two.run", "one.run")), "-m", "map", "--methods"])
    printed = capsys.readouterr().out
    assert printed.startswith("We evaluated 2 systems with map.trec")
    assert "@inproceedings{smucker2007," in printed
    main(["compare", *(str(folder / name) for name in ("t.qrels", "two.run", "one.run")), "-m", "map", "--sort", "map"])
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith(("one ", "two "))]
    assert [row for row in rows if row in ("one", "two")][:2] == ["one", "two"]


def test_the_manifest_has_a_commit() -> None:
    assert "commit" in Manifest.__dataclass_fields__
