"""Every result object shows itself and hands itself on in the same way."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.render.results import Result, Teller
from groupgt.report.tellers import TELLERS
from tests.snapshots import Snapshot

pytestmark = pytest.mark.slow

TRUTH = {"q1": [["a", "b"], ["c"]], "q2": [["d"]], "q3": [["e"]], "q4": []}
RUNS = {
    "bm25": {"q1": ["a", "x", "c"], "q2": ["x", "d"], "q3": ["y"]},
    "dense": {"q1": ["c", "b"], "q2": ["d"], "q3": ["e"], "q4": ["z"]},
}
FIVE = {**RUNS, "none": {"q1": []}, "turned": {"q1": ["c", "x", "a"]}, "short": {"q2": ["d"], "q3": ["e"]}}
CORPUS = {"a": "Thirty days of leave a year.", "d": "No leave.", "n": "thirty days of leave, a year"}
EXPERIMENT = """
version: 1
name: shown
convention: coverage
datasets: {small: {ground_truth: qa.jsonl, corpus: corpus.jsonl}}
systems: {bm25: {use: bm25}}
evaluate: {metrics: [recall@2]}
"""


def outcome(folder: Path) -> groupgt.Outcome:
    (folder / "qa.jsonl").write_text('{"qid": "q", "query": "leave?", "retrieval_gt": [["a"]]}\n')
    corpus = [json.dumps({"doc_id": name, "contents": text}) for name, text in CORPUS.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus))
    (folder / "shown.yaml").write_text(EXPERIMENT)
    return groupgt.run_experiment(folder / "shown.yaml")


def audited() -> groupgt.Comparison:
    """Two runs with an audit of ten of thirty queries."""
    truth = {f"q{number}": [["a", "b"], ["c"]] for number in range(30)}
    runs = {name: dict.fromkeys(truth, ranking) for name, ranking in (("one", ["a", "x"]), ("two", ["a", "c"]))}
    human = {qid: truth[qid] for qid in list(truth)[:10]}
    return groupgt.compare(truth, runs, ["recall@2"], audit=human, assume_random=True, resamples=10)


def without_answers() -> tuple[pl.DataFrame, dict[str, dict[str, float]]]:
    """Ground truth with queries that have no answer, and a run with scores."""
    rows = {"qid": ["a", "b"], "retrieval_gt": [[["x"]], []], "answerable": [True, False]}
    return pl.DataFrame(rows, strict=False), {"a": {"x": 0.9}, "b": {"y": 0.4}}


def repeated(run: dict[str, list[str]]) -> groupgt.Run:
    return groupgt.Run.of_trials([groupgt.Run.of(run)] * 2)


# Each kind of result, and what it needs that may not be installed.
RESULTS: dict[str, tuple[Callable[[Path], Result], str]] = {
    "Evaluation": (lambda _: groupgt.evaluate(TRUTH, RUNS["bm25"], ["recall@2"], by="n_groups"), ""),
    "Repeated": (
        lambda _: groupgt.evaluate(TRUTH, groupgt.Run.of_trials([groupgt.Run.of(RUNS["bm25"])] * 2), ["mrr"]),
        "",
    ),
    "Evaluations": (lambda _: groupgt.evaluate_runs(TRUTH, RUNS, ["recall@2", "mrr"]), ""),
    "Comparison": (lambda _: groupgt.compare(TRUTH, RUNS, ["recall@2"], resamples=10), ""),
    "Correlation": (lambda _: groupgt.correlate(TRUTH, runs=FIVE, metrics=["recall@2", "mrr"], resamples=10), ""),
    "Depths": (lambda _: groupgt.depth(TRUTH, RUNS["bm25"], [0.5, 1.0]), ""),
    "Stages": (lambda _: groupgt.stages(TRUTH, {"bm25": RUNS["bm25"], "top@1": RUNS["bm25"]}, by="n_groups"), ""),
    "Outcomes": (lambda _: groupgt.outcomes(TRUTH, RUNS["bm25"], dict.fromkeys(TRUTH, 1), k=2), ""),
    "Identified": (lambda _: groupgt.identify(TRUTH, RUNS["bm25"], ".5000"), ""),
    "Misses": (lambda _: groupgt.misses(TRUTH, RUNS["bm25"], k=2), ""),
    "PowerAnalysis": (lambda _: groupgt.power(TRUTH, RUNS, ["recall@2"], by="n_groups"), "scipy"),
    "AuditPower": (lambda _: audited().audit_power(), ""),
    "Thresholds": (lambda _: groupgt.thresholds(*without_answers(), 0.5), ""),
    "Check": (lambda _: groupgt.check(TRUTH, RUNS), ""),
    "Agreement": (lambda _: groupgt.agree(TRUTH, RUNS["bm25"], other_truth={**TRUTH, "q1": [["a", "x"]]}), ""),
    "Rechunked": (lambda _: groupgt.rechunk({"q": [["o"]]}, {"o": ("d", 0, 9)}, {"n": ("d", 0, 8)}), ""),
    "Outcome": (outcome, "bm25s"),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_one_family(kind: str, tmp_path: Path) -> None:
    make, needed = RESULTS[kind]
    if needed and find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    result = make(tmp_path)
    assert type(result).__name__ == kind
    headers, rows = result.csv_rows()
    assert rows
    assert all(len(row) == len(headers) for row in rows)
    assert result.table("github").startswith("|")
    assert str(result) == result.text()
    assert set(result.table().splitlines()) <= set(str(result).splitlines())
    frame = result.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height > 0
    assert not any(frame[name].is_nan().any() for name in frame.columns if frame[name].dtype.is_float())
    if find_spec("pandas") and find_spec("pyarrow"):
        assert pl.from_pandas(result.to_pandas(), schema_overrides=frame.schema).equals(frame)
    assert isinstance(json.loads(json.dumps(result.to_dict(), allow_nan=False)), dict)
    assert "<table>" in result._repr_html_()


def test_every_public_result_is_of_the_family() -> None:
    results = {
        name for name in groupgt.__all__ if inspect.isclass(kind := getattr(groupgt, name)) and issubclass(kind, Result)
    }
    assert results == set(RESULTS)


@pytest.mark.parametrize("kind", TELLERS)
def test_every_kind_that_is_told_has_its_teller(kind: str) -> None:
    home, name = TELLERS[kind], f"{kind}Teller"
    # One line and no table; from result folders; from experiment files; of one run or of several trials.
    assert kind in RESULTS or kind in ("GateResult", "Across", "DataChecks", "Evaluated")
    assert issubclass(getattr(import_module(f"groupgt.report.{home}"), name), Teller)


def test_what_extends_a_result_is_told_like_it() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Extended(groupgt.Evaluation):
        pass

    evaluation = groupgt.evaluate(TRUTH, RUNS["bm25"], ["recall@2"])
    assert Extended(**{field.name: getattr(evaluation, field.name) for field in fields(evaluation)}).text() == (
        evaluation.text()
    )


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [json.dumps({"qid": qid, "retrieval_gt": groups}) for qid, groups in TRUTH.items()]
    (tmp_path / "qa.jsonl").write_text("\n".join(rows))
    for name, run in RUNS.items():
        lines = (json.dumps({"qid": qid, "retrieved_ids": ids}) for qid, ids in run.items())
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)


PATHS = ["bm25.jsonl", "dense.jsonl"]
SAME: dict[str, tuple[list[str], Callable[[], Result]]] = {
    "evaluate": (
        ["evaluate", "qa.jsonl", *PATHS, "-m", "recall@2", "--details"],
        lambda: groupgt.evaluate_runs("qa.jsonl", PATHS, ["recall@2"]),
    ),
    "conventions": (
        ["evaluate", "qa.jsonl", *PATHS, "-m", "recall,mrr", "-k", "2", "--convention", "autorag,trec", "--details"],
        lambda: groupgt.evaluate_runs("qa.jsonl", PATHS, ["recall", "mrr"], k=2, convention=["autorag", "trec"]),
    ),
    "misses": (
        ["misses", "qa.jsonl", "bm25.jsonl", "-k", "2", "--details"],
        lambda: groupgt.misses("qa.jsonl", "bm25.jsonl", k=2),
    ),
    "misses of several": (
        ["misses", "qa.jsonl", *PATHS, "-k", "1", "--worst", "3", "--details"],
        lambda: groupgt.misses("qa.jsonl", {"bm25": "bm25.jsonl", "dense": "dense.jsonl"}, k=1, worst=3),
    ),
    "depth": (
        ["depth", "qa.jsonl", "bm25.jsonl", "--by", "n_groups", "--details"],
        lambda: groupgt.depth("qa.jsonl", "bm25.jsonl", by="n_groups"),
    ),
    "compare": (
        ["compare", "qa.jsonl", *PATHS, "-m", "mrr", "--resamples", "10", "--details"],
        lambda: groupgt.compare("qa.jsonl", PATHS, ["mrr"], resamples=10),
    ),
    "stages": (
        ["stages", "qa.jsonl", "bm25.jsonl", "top=bm25.jsonl@1"],
        lambda: groupgt.stages("qa.jsonl", {"bm25": "bm25.jsonl", "top": "bm25.jsonl@1"}),
    ),
    "check": (["check", "qa.jsonl", "bm25.jsonl", "--details"], lambda: groupgt.check("qa.jsonl", "bm25.jsonl")),
}


@pytest.mark.parametrize("command", SAME)
@pytest.mark.parametrize("style", ["simple", "github"])
@pytest.mark.usefixtures("files")
def test_commands_print_what_results_show(command: str, style: str, capsys: pytest.CaptureFixture[str]) -> None:
    call, make = SAME[command]
    main([*call, "--format", style])
    assert capsys.readouterr().out == f"{make().text(style)}\n"


@pytest.mark.parametrize("command", ["evaluate", "misses", "misses of several", "compare", "check"])
@pytest.mark.usefixtures("files")
def test_commands_print_the_same_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    call, make = SAME[command]
    main([*call, "--format", "json"])
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(make().to_dict()))


def test_frames_have_null_where_there_is_no_value() -> None:
    frame = groupgt.evaluate({"q": []}, {"q": ["a"]}, ["recall"]).to_polars()
    assert frame["mean"].to_list() == [None]
    assert math.isnan(groupgt.evaluate({"q": []}, {"q": ["a"]}, ["recall"]).means["recall"])


def test_pandas_is_named_where_it_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: pl.DataFrame) -> None:
        raise ModuleNotFoundError("pandas is required for `to_pandas()`")

    monkeypatch.setattr(pl.DataFrame, "to_pandas", absent)
    with pytest.raises(groupgt.ConfigError, match=r"pip install 'groupgt\[frames\]'"):
        groupgt.evaluate(TRUTH, RUNS["bm25"], ["recall"]).to_pandas()


def test_a_notebook_shows_the_figure_below_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    import groupgt.render.drawing

    truth, run = {"q": [["a"], ["b"]], "p": [["c"]]}, {"q": ["a"], "p": ["c"]}
    evaluation = groupgt.evaluate(truth, run, ["recall@2"])
    table = groupgt.compare(truth, {"one": run, "two": {"q": ["b", "a"]}}, ["recall@2"], resamples=20)
    runs = {"one": run, "two": {"q": ["b"]}}
    answers = [evaluation, table, groupgt.depth(truth, run), groupgt.misses(truth, run), groupgt.misses(truth, runs)]
    answers += [groupgt.check(truth), groupgt.misses(truth, {"q": ["a", "b"], "p": ["c"]})]
    monkeypatch.setattr(groupgt.render.drawing, "has_converter", lambda: False)
    bare = [answer._repr_html_() for answer in answers]
    assert all("<table>" in text and "<img" not in text for text in bare)
    monkeypatch.setattr(groupgt.render.drawing, "has_converter", lambda: True)
    monkeypatch.setattr(groupgt.render.drawing, "_converted", lambda spec, ending: b"<svg/>")
    pictures = [answer._repr_html_().removeprefix(text) for answer, text in zip(answers, bare, strict=True)]
    assert pictures[0].startswith('<img alt="Means against depth for ')
    assert pictures[1].startswith('<img alt="Means of recall@2 with 95% CI: ')
    assert pictures[2].startswith('<img alt="Fraction of queries by the last rank: ')
    assert pictures[3].startswith('<img alt="Groups covered, of 2: results 1.')
    assert pictures[4].startswith('<img alt="Groups covered, of 3: one 2, two 1.')
    assert pictures[5:] == ["", ""]  # nothing is missed


def test_power_draws_its_curve(snapshot: Snapshot) -> None:
    pytest.importorskip("scipy", reason="the extra groupgt[stats] is not installed")
    analysis = groupgt.power(TRUTH, RUNS, ["recall@2"])
    figure = analysis.plot()
    assert [row[0] for row in figure.rows[:1]] == ["dense"]
    powers = [row[3] for row in figure.rows]
    assert powers == sorted(powers)
    # The curve goes through what the table says.
    (row,) = analysis
    assert dict(zip([row[2] for row in figure.rows], powers))[8] >= (row.reached or 0)
    alike = groupgt.power(TRUTH, {"one": RUNS["bm25"], "same": RUNS["bm25"]}, ["recall@2"])
    snapshot(alike.text())
    with snapshot.raises(groupgt.ConfigError):
        alike.plot()
