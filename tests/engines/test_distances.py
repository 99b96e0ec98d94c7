"""Scores that are distances, and orders that contradict scores or ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import groupgt
from groupgt.engines.carriers import all_rankings
from groupgt.engines.order import contradictions, with_distances
from groupgt.model.policy import Policy
from tests.conftest import Cli

TRUTH = {"q": [["a"], ["b"]], "r": [["c"]]}
# Distances: a 0.1 and b 0.7 for q, c 0.2 for r; at most 0.5 leaves a and c.
SHAPES: dict[str, Any] = {
    "pairs": {"q": [("a", 0.1), ("b", 0.7)], "r": [("c", 0.2)]},
    "mappings": {"q": {"b": 0.7, "a": 0.1}, "r": {"c": 0.2}},
    "trec": "q Q0 a 1 0.1 t\nq Q0 b 2 0.7 t\nr Q0 c 1 0.2 t\n",
    "csv": "qid,doc_id,score\nq,b,0.7\nq,a,0.1\nr,c,0.2\n",
    "jsonl": '{"qid": "q", "retrieved_ids": ["a", "b"], "retrieve_scores": [0.1, 0.7]}\n'
    '{"qid": "r", "retrieved_ids": ["c"], "retrieve_scores": [0.2]}\n',
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", ["small", "large"])
def test_declared_distances_rank_the_lowest_first_and_are_cut_from_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str, size: str
) -> None:
    """recall at most 0.5: a of two groups is 1/2, c is 1: .75; mrr 1, as both queries begin with a hit."""
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)
    run: Any = SHAPES[shape]
    if isinstance(run, str):
        path = tmp_path / f"run.{shape}"
        path.write_text(run)
        run = path
    found = groupgt.evaluate(TRUTH, run, ["recall.coverage@0.5score", "mrr.coverage"], scores="ascending")
    assert found.means == {"recall.coverage@0.5score": 0.75, "mrr.coverage": 1.0}
    assert "rising_scores" not in found.counts
    assert "contradicted_ranks" not in found.counts
    given = dict(all_rankings(found.run, Policy()))
    assert given == {"q": (["a", "b"], [0.1, 0.7]), "r": (["c"], [0.2])}
    assert with_distances(found.run) is found.run


def test_distances_that_are_not_declared_are_told_and_cannot_be_cut() -> None:
    found = groupgt.evaluate(TRUTH, SHAPES["pairs"], ["mrr"])
    # q alone has two results.
    assert found.counts["rising_scores"] == 1
    told = " ".join(groupgt.evaluate_runs(TRUTH, {"far": SHAPES["pairs"]}, ["mrr"]).text().split())
    assert "queries whose scores rise from first to last result: far 1. groupgt keeps that order. Sort" in told
    with pytest.raises(groupgt.DataError, match=r"falling score, found 0.1 before 0.7; if the scores are distances"):
        groupgt.evaluate(TRUTH, SHAPES["pairs"], ["recall@0.5score"])


def test_falling_scores_that_are_declared_as_ascending_are_told() -> None:
    run = {"q": [("a", 0.7), ("b", 0.1)]}
    found = groupgt.evaluate_runs({"q": [["a"]]}, {"far": run}, ["mrr"], scores={"far": "ascending"})
    assert "scores fall, although declared as ascending," in " ".join(found.text().split())
    with pytest.raises(groupgt.DataError, match=r"rising score, found 0.7 before 0.1$"):
        groupgt.evaluate({"q": [["a"]]}, run, ["recall@0.5score"], scores="ascending")


@pytest.mark.parametrize("size", ["small", "large"])
def test_ranks_that_contradict_scores(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    """In q the second rank has the better score; in r equal ranks say nothing; in s ranks and scores agree."""
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)
    (tmp_path / "truth").write_text("q 0 a 1\nr 0 a 1\ns 0 a 1\n")
    lines = ["q Q0 a 1 0.1 t", "q Q0 b 2 0.3 t", "r Q0 a 0 0.1 t", "r Q0 b 0 0.3 t", "s Q0 b 2 0.1 t", "s Q0 a 1 0.3 t"]
    (tmp_path / "run.trec").write_text("\n".join(lines) + "\n")
    run = groupgt.read_run(tmp_path / "run.trec")
    assert contradictions(run, thorough=True).contradicted_ranks == 1
    assert contradictions(run).contradicted_ranks == 1
    out = cli("check", tmp_path / "truth", tmp_path / "run.trec", "--details").out
    line = [line for line in out.splitlines() if "ranks contradict their scores" in line][-1]
    assert line.split()[-1] == "1"
    out = cli("evaluate", tmp_path / "truth", tmp_path / "run.trec", "-m", "mrr").out
    assert "queries whose ranks contradict their scores: run 1." in " ".join(out.split())


def rising(queries: int) -> dict[str, dict[str, float]]:
    """Queries with three results each, the lowest score first."""
    return {f"q{at}": {"a": 0.1, "b": 0.3, "c": 0.5 + at} for at in range(queries)}


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("shape", ["mapping", "csv", "frame"])
def test_rows_that_rise_in_every_query_are_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str, shape: str
) -> None:
    """Of 3 * 2 orders of three rows one rises: for three queries 1 of 216, which is no chance; for two 1 of 36."""
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)

    def counted(run: dict[str, dict[str, float]], **options: Any) -> int:
        rows = [(qid, name, score) for qid, results in run.items() for name, score in results.items()]
        frame = pl.DataFrame(rows, ["qid", "doc_id", "score"], orient="row")
        frame.write_csv(tmp_path / "run.csv")
        given: Any = {"mapping": run, "csv": tmp_path / "run.csv", "frame": frame}[shape]
        truth = {qid: [["a"]] for qid in run}
        return groupgt.evaluate(truth, given, ["mrr"], **options).counts.get("rising_rows", 0)

    assert counted(rising(2)) == 0
    assert counted({**rising(3), "r": {"a": 0.2, "b": 0.1}}) == 0
    assert counted({**rising(3), "r": {"a": 0.2, "b": 0.2}}) == 3
    assert counted(rising(3), scores="ascending") == 0
    assert counted(rising(3)) == 3
    (tmp_path / "truth.json").write_text('{"q0": ["a"], "q1": ["a"], "q2": ["b"]}')
    ended = cli("check", tmp_path / "truth.json", tmp_path / "run.csv")
    assert ended.status == 1
    assert "queries whose scores rise along the ranking: 3" in ended.out
    told = " ".join(cli("evaluate", tmp_path / "truth.json", tmp_path / "run.csv", "-m", "mrr").out.split())
    assert "rise from first to last row: run 3. groupgt sorts rows, highest first; if the scores are distances," in told


@pytest.mark.parametrize("size", ["small", "large"])
def test_ranks_alone_are_no_distances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)
    (tmp_path / "run.csv").write_text("qid,doc_id,rank\nq,a,1\nq,b,2\n")
    found = groupgt.evaluate({"q": [["a"]]}, tmp_path / "run.csv", ["mrr"], scores="ascending")
    assert found["mrr"] == 1.0
    assert not found.run.ascending


def test_scores_are_declared_for_all_runs_or_by_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "truth").write_text("q 0 a 1\n")
    (tmp_path / "near.trec").write_text("q Q0 a 1 0.1 t\nq Q0 b 2 0.3 t\n")
    (tmp_path / "likely.trec").write_text("q Q0 a 1 0.9 t\nq Q0 b 2 0.3 t\n")
    command = ["evaluate", tmp_path / "truth", tmp_path / "near.trec", tmp_path / "likely.trec", "-m", "mrr"]

    def means(*options: str) -> list[str]:
        ended = cli(*command, "--format", "csv", *options)
        assert ended.status == 0
        return [line.split(",")[1] for line in ended.out.splitlines()[1:]]

    assert means() == ["0.5", "1.0"]
    assert means("--scores", "near=ascending") == ["1.0", "1.0"]
    assert means("--scores", "ascending") == ["1.0", "0.5"]
    for wrong in (["rising"], ["near=up"], ["ascending", "near=ascending"], ["near=ascending", "near=descending"]):
        ended = cli(*command, *(word for each in wrong for word in ("--scores", each)))
        assert ended.status == 2
        assert "--scores: expected descending or ascending, or NAME=ascending" in ended.err
    for name in ("evaluate", "check"):
        ended = cli(name, *command[1:4], "--scores", "nearby=ascending")
        assert ended.status == 2
        assert "expected the name of a run, near or likely, found 'nearby'" in ended.err
    with pytest.raises(groupgt.ConfigError, match="scores: expected descending or ascending"):
        groupgt.evaluate(TRUTH, SHAPES["pairs"], ["mrr"], scores="up")


def test_a_threshold_on_distances_is_found_from_the_other_side() -> None:
    """The unanswerable query's best distance is 0.5: a threshold below it, at 0.2 at least, leaves it empty."""
    import polars as pl

    rows = {"qid": ["a", "b"], "retrieval_gt": [[["x"]], []], "answerable": [True, False]}
    run = {"a": {"x": 0.2}, "b": {"y": 0.5}}
    found = groupgt.thresholds(pl.DataFrame(rows, strict=False), run, 1.0, scores="ascending")
    (chosen,) = (each for each in found.thresholds if each.asked)
    assert chosen.threshold is not None
    assert 0.2 <= chosen.threshold < 0.5
    assert (chosen.abstains, chosen.recall) == (1.0, 1.0)
    told = " ".join(found.text().split())
    assert f"at a distance threshold of {chosen.threshold:g}." in told
    assert "groupgt ignores results above the threshold" in told


def test_scores_made_from_ranks_are_no_scores() -> None:
    run = {"q": [("a", 1.0), ("b", 0.5)]}
    with pytest.raises(groupgt.DataError, match="these results are only ranked"):
        groupgt.evaluate({"q": [["a"]]}, run, ["recall@0.7score"])


@pytest.mark.parametrize("size", ["small", "large", "huge", "parts"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_ranks_that_contradict_scores_in_tables(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, size: str
) -> None:
    """In q the second rank has the better score; r has no ranks; s agrees, though its lines are not in order."""
    monkeypatch.setattr("groupgt.formats.source.SMALL", 0 if size == "large" else 1 << 20)
    cells: dict[str, list[Any]] = {"qid": [*"qqrrss"], "doc_id": [*"ababba"], "rank": [1, 2, None, None, 2, 1]}
    rows = pl.DataFrame({**cells, "score": [0.1, 0.3, 0.1, 0.3, 0.1, 0.3]})
    run = tmp_path / f"run.{ending}"
    if ending.startswith("json"):
        getattr(rows, "write_json" if ending == "json" else "write_ndjson")(run)
    elif ending == "parquet":
        rows.write_parquet(run)
    else:
        rows.write_csv(run, separator="," if ending == "csv" else "\t")
    truth = {"q": [["a"]], "r": [["a"]], "s": [["a"]]}
    given: Any = f"{tmp_path}/run.*" if size == "parts" else run
    if size == "huge":
        monkeypatch.setattr("groupgt.engines.order.MOST_ROWS", 5)
    found = groupgt.evaluate(truth, given, ["mrr"], parts=size == "parts")
    is_left = size == "huge" and ending == "parquet"  # the only columns: their ranks are read by `check` alone
    assert found.counts.get("contradicted_ranks") == (None if is_left else 1)
    assert contradictions(found.run, thorough=True).contradicted_ranks == 1
    (tmp_path / "truth").write_text("q 0 a 1\nr 0 a 1\ns 0 a 1\n")
    line = [
        line for line in cli("check", tmp_path / "truth", run, "--details").out.splitlines() if "ranks contra" in line
    ]
    assert line[-1].split()[-1] == "1"


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "arrow"])
def test_ranks_that_contradict_scores_in_frames(kind: str) -> None:
    rows = pl.DataFrame({"qid": [*"qqs"], "doc_id": [*"aba"], "rank": [1, 2, 1], "score": [0.1, 0.3, 0.1]})
    if kind in ("pandas", "arrow"):
        pytest.importorskip("pyarrow", reason="polars converts with pyarrow, of the extra [frames]")
    made = {"polars": rows.clone, "lazy": rows.lazy, "pandas": rows.to_pandas, "arrow": rows.to_arrow}
    assert groupgt.evaluate({"q": [["a"]], "s": [["a"]]}, made[kind](), ["mrr"]).counts["contradicted_ranks"] == 1
    assert "contradicted_ranks" not in groupgt.evaluate({"q": [["a"]]}, rows.drop("score"), ["mrr"]).counts
