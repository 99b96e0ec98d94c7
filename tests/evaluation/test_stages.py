"""Stages: every group is attributed once, and the counts add up."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.cli.main import main
from groupgt.report.experiment import page_of
from tests.bad_input import Cli
from tests.snapshots import Snapshot

TRUTH = {"q1": [["a", "b"], ["c"], ["d"]], "q2": [["e"]], "q3": []}


def test_distances(tmp_path: Path, cli: Cli) -> None:
    truth, near, cut = (tmp_path / name for name in ("t.jsonl", "near.csv", "cut.csv"))
    truth.write_text('{"qid": "q1", "retrieval_gt": [["a"]]}\n')
    for run in (near, cut):
        run.write_text("qid,doc_id,score\nq1,x,0.9\nq1,a,0.1\n")
    assert "covers 0 of 1 group" in cli("stages", truth, near, f"{cut}@1").out
    assert "covers 1 of 1 group" in cli("stages", truth, near, f"{cut}@1", "--scores", "cut=ascending").out
    assert "found 'other'" in cli("stages", truth, near, cut, "--scores", "other=ascending").err
    cli("convert", near, tmp_path / "o.jsonl", "--to", "jsonl", "--scores", "ascending")
    assert groupgt.read_run(tmp_path / "o.jsonl").rankings == {"q1": ["a", "x"]}
    assert cli("convert", near, tmp_path / "o.trec", "--to", "trec", "--scores", "far=ascending").status == 2


def test_the_cutoff_of_a_name_cuts_a_path(tmp_path: Path, cli: Cli) -> None:
    truth = {"q1": [["a"], ["b"]]}
    run = tmp_path / "r.jsonl"
    run.write_text('{"qid": "q1", "retrieved_ids": ["a", "b"]}\n')
    for second in (run, str(run), {"q1": ["a", "b"]}):
        found = groupgt.stages(truth, {"one": run, "two@1": second})
        assert [(each.name, each.cutoff, each.covered) for each in found.stages] == [("one", None, 2), ("two", 1, 1)]
    with pytest.raises(groupgt.ConfigError, match="expected one cutoff, found two@1"):
        groupgt.stages(truth, {"one": run, "two@1": f"{run}@2"})
    (tmp_path / "t.jsonl").write_text('{"qid": "q1", "retrieval_gt": [["a"], ["b"]]}\n')
    assert "covers 1 of 2 groups" in cli("stages", tmp_path / "t.jsonl", run, f"two@1={run}").out


def test_by_hand() -> None:
    runs = {
        "retrieved@3": {"q1": ["a", "x", "c", "d"], "q2": ["y", "e"]},
        "reranked": {"q1": ["c", "b"], "q2": ["y"]},
        "prompt@1": {"q1": ["c", "b"], "q2": ["e"]},
    }
    found = groupgt.stages(TRUTH, runs)
    # d is at rank 4, beyond 3: never retrieved. (a or b) goes on as b and is cut at the prompt. e is lost by the
    # reranker, but the prompt has it: not lost, and gained.
    assert [(each["group"], each["covered"], each["lost"]) for each in found.groups] == [
        ("group 1", [True, True, False], "prompt"),
        ("group 2", [True, True, True], None),
        ("group 3", [False, False, False], "retrieved"),
        ("group 1", [True, False, True], None),
    ]
    counts = [(each.name, each.cutoff, each.covered, each.lost, each.gained, each.complete) for each in found.stages]
    assert counts == [("retrieved", 3, 3, 1, 0, 1), ("reranked", None, 2, 0, 0, 0), ("prompt", 1, 2, 1, 1, 1)]
    assert (found.queries, found.kept) == (2, 2)
    shown = str(found)
    kept = "The last stage covers 2 of 4 groups"
    assert f"{kept}. No single stage loses most: retrieved and prompt lose 1 (25%) each." in shown
    assert "in 1 case, a stage covers a group that the previous stage missed" in shown


def test_one_stage_is_named_if_it_alone_loses_most(snapshot: Snapshot) -> None:
    """Of four groups the reranker loses two, and the prompt one: 2 ÷ 4 are 50%."""
    truth = {"q": [["a"], ["b"], ["c"], ["d"]]}
    pipeline = {"retrieved": "abcd", "reranked": "ab", "prompt": "a"}
    shown = str(groupgt.stages(truth, {name: {"q": list(ids)} for name, ids in pipeline.items()}))
    snapshot(shown)
    whole = str(groupgt.stages(truth, {name: {"q": list("abcd")} for name in pipeline}))
    snapshot(whole)


def test_a_cutoff_beyond_the_results_is_told(snapshot: Snapshot) -> None:
    runs = {"retrieved@3": {"q1": ["a", "c", "d"], "q2": ["y"]}, "reranked@5": {"q1": ["a", "c"], "q2": ["e"]}}
    found = groupgt.stages(TRUTH, runs)
    assert [each.depth for each in found.stages] == [3, 2]
    told = [line for line in str(found).splitlines() if "is cut at" in line]
    snapshot(told)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_every_group_is_attributed_once(seed: int, count: int) -> None:
    rng = random.Random(seed)
    truth = {f"q{n}": [rng.sample("abcdef", rng.randint(1, 3)) for _ in range(rng.randint(1, 4))] for n in range(6)}
    runs = {f"s{at}@{rng.randint(1, 6)}": {q: rng.sample("abcdefxyz", 6) for q in truth} for at in range(count)}
    found = groupgt.stages(truth, runs)
    assert len(found.groups) == sum(map(len, truth.values()))
    assert sum(each.lost for each in found.stages) + found.kept == len(found.groups)
    names = [each.name for each in found.stages]
    for each in found.groups:
        covering = [name for name, is_covered in zip(names, each["covered"]) if is_covered]
        after = names[names.index(each["lost"]) :] if each["lost"] else []
        assert not set(covering) & set(after)
        assert each["lost"] is not None or covering[-1] == names[-1]
    for at, stage in enumerate(found.stages):
        assert stage.covered == sum(each["covered"][at] for each in found.groups)


def test_citations_of_trec_rag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "truth.jsonl").write_text(
        "".join(json.dumps({"qid": qid, "retrieval_gt": groups}) + "\n" for qid, groups in TRUTH.items()),
        encoding="utf-8",
    )
    answers: list[dict[str, Any]] = [
        {"topic_id": "q1", "references": ["a", "c", "x"], "answer": [{"text": "", "citations": [2, 0]}]},
        {"topic_id": "q2", "references": ["y", "e"], "answer": [{"text": "", "citations": ["e"]}, {"citations": [1]}]},
    ]
    cited = tmp_path / "cited.jsonl"
    cited.write_text("".join(json.dumps(each) + "\n" for each in answers), encoding="utf-8")
    run = groupgt.read_run(cited)
    assert groupgt.evaluate(TRUTH, run, ["recall"], convention="coverage").values["recall"][:2].tolist() == [1 / 3, 1]
    (tmp_path / "retrieved.trec").write_text(
        "".join(
            f"{qid} Q0 {doc} {rank} {-rank} t\n"
            for qid, docs in (("q1", "acd"), ("q2", "ye"))
            for rank, doc in enumerate(docs, 1)
        ),
        encoding="utf-8",
    )
    words = [str(tmp_path / name) for name in ("truth.jsonl", "retrieved.trec@2", "cited.jsonl")]
    main(["stages", *words, "--format", "json", "--groups", str(tmp_path / "groups.csv")])
    told = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["covered"], each["lost"]) for each in told["stages"]] == [
        ("retrieved", 3, 1),
        ("cited", 2, 1),
    ]
    assert (tmp_path / "groups.csv").read_text(encoding="utf-8").splitlines()[:2] == [
        "qid,group,retrieved,cited,lost",
        "q1,group 1,1,1,",
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"topic_id": "q1", "references": ["a"], "answer": [{"citations": [1]}]},
            "expected a position in references (0 to",
        ),
        (
            {"topic_id": "q1", "references": ["a"], "answer": [{"citations": ["b"]}]},
            "one of the ids in references, found 'b'",
        ),
        ({"topic_id": "q1", "references": ["a"], "answer": [{"text": ""}]}, "sentence 1: expected citations (a list)"),
        ({"references": ["a"], "answer": []}, "expected topic_id, references (a list) and answer (a list), found ref"),
    ],
)
def test_invalid_answers_are_told(tmp_path: Path, answer: dict[str, Any], expected: str) -> None:
    path = tmp_path / "cited.jsonl"
    path.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    with pytest.raises(groupgt.DataError) as error:
        groupgt.read_run(path)
    assert f"{path}:1" in str(error.value)
    assert expected in str(error.value)


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    run = {"q1": ["a"]}
    with snapshot.raises(groupgt.ConfigError):
        groupgt.stages(TRUTH, {"one": run})
    with pytest.raises(groupgt.DataError, match="duplicate run name 'one'"):
        groupgt.stages(TRUTH, {"one": run, "one@3": run})
    with snapshot.raises(groupgt.ConfigError):
        groupgt.stages(TRUTH, {"one": run, "two@0": run})
    with pytest.raises(SystemExit) as end:
        main(["stages", str(tmp_path / "none.jsonl"), "nothing.trec@3", "neither.trec"])
    assert end.value.code == 2
    assert "nothing.trec" in capsys.readouterr().err


EXPERIMENT = """
version: 1
name: pipeline
datasets: {one: {ground_truth: truth.jsonl}}
systems:
  retrieved: {use: results, with: {path: retrieved.jsonl}, stages: {reranked: reranked.jsonl@2, cited: cited.jsonl}}
  other: {use: results, with: {path: reranked.jsonl}}
evaluate: {metrics: [recall@3], by: [type]}
"""


def staged(folder: Path) -> Path:
    """An experiment with a system of three stages."""
    lines = {
        "truth": [
            {"qid": "q1", "retrieval_gt": [["a", "b"], ["c"]], "type": "x"},
            {"qid": "q2", "retrieval_gt": [["d"], ["e"]], "type": "y"},
        ],
        "retrieved": [{"qid": "q1", "retrieved_ids": ["n", "b", "c"]}, {"qid": "q2", "retrieved_ids": ["d", "m", "e"]}],
        "reranked": [{"qid": "q1", "retrieved_ids": ["b", "n", "c"]}, {"qid": "q2", "retrieved_ids": ["d", "e"]}],
        "cited": [
            {"topic_id": "q1", "references": ["b", "n"], "answer": [{"text": "One.", "citations": [0]}]},
            {"topic_id": "q2", "references": ["d", "e"], "answer": [{"text": "Two.", "citations": [0]}]},
        ],
    }
    for name, rows in lines.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "pipeline.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return folder / "pipeline.yaml"


def test_stages_of_a_system_in_an_experiment(tmp_path: Path, snapshot: Snapshot) -> None:
    outcome = groupgt.run_experiment(staged(tmp_path))
    found = outcome.stages["one"]["retrieved"]
    alone = groupgt.stages(
        tmp_path / "truth.jsonl",
        {
            "retrieved": tmp_path / "retrieved.jsonl",
            "reranked": f"{tmp_path / 'reranked.jsonl'}@2",
            "cited": tmp_path / "cited.jsonl",
        },
        by="type",
    )
    # Retrieved covers all four groups; c is cut by the reranker, e is not cited.
    assert [(each.name, each.covered, each.lost) for each in found.stages] == [
        ("retrieved", 4, 0),
        ("reranked", 3, 1),
        ("cited", 2, 1),
    ]
    assert (found.stages, found.slices, found.groups) == (alone.stages, alone.slices, alone.groups)
    assert "stages of retrieved" in str(outcome)
    assert outcome.folder is not None
    results = json.loads((outcome.folder / "results.json").read_text(encoding="utf-8"))
    stages = results["datasets"]["one"]["stages"]["retrieved"]
    assert (stages["groups"], stages["kept"], stages["stages"][1]["lost"]) == (4, 2, 1)
    rows = (outcome.folder / "stages" / "one" / "retrieved.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "qid,group,retrieved,reranked,cited,lost"
    assert len(rows) == 5
    files = json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    assert {"reranked.jsonl", "cited.jsonl"} <= set(files)
    drawings = page_of(outcome)["datasets"][0]["drawings"]
    assert "stages retrieved" in drawings
    snapshot(found.plot().text)


LIVE = """
version: 1
name: live
datasets: {one: {ground_truth: truth.jsonl, corpus: corpus.jsonl}}
systems:
  first: {use: bm25}
  second: {use: results, with: {path: reranked.jsonl}, stages: {found: first@2, reranked: second, cited: cited.jsonl@9}}
  third: {use: results, with: {path: reranked.jsonl}, stages: {again: second@1, at the end: first}}
evaluate: {metrics: [recall@3], depth: 3}
"""


def test_stages_may_be_systems_of_the_file(tmp_path: Path, snapshot: Snapshot) -> None:
    """Only b, d and e are found by words; `second` puts them in its own order."""
    staged(tmp_path)
    words = {
        "a": "tides",
        "b": "harbour fares",
        "c": "weather",
        "d": "pier fares",
        "e": "pier shop",
        "n": "news",
        "m": "map",
    }
    corpus = "".join(json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in words.items())
    (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    rows = list(map(json.loads, (tmp_path / "truth.jsonl").read_text(encoding="utf-8").splitlines()))
    for row, query in zip(rows, ("harbour", "pier")):
        row["query"] = query
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "live.yaml").write_text(LIVE, encoding="utf-8")
    outcome = groupgt.run_experiment(tmp_path / "live.yaml", only=["second", "third"])
    assert list(outcome.evaluations["one"]) == ["second", "third"]
    second, third = (outcome.stages["one"][name] for name in ("second", "third"))
    # BM25 finds b, d and e: three groups of four; the reranked file has them all.
    assert [(each.name, each.cutoff, each.covered) for each in second.stages] == [
        ("found", 2, 3),
        ("reranked", None, 4),
        ("cited", 9, 2),
    ]
    # A system that does not name itself comes first.
    assert [(each.name, each.cutoff, each.covered) for each in third.stages] == [
        ("third", None, 4),
        ("again", 1, 2),
        ("at the end", None, 3),
    ]
    snapshot(str(outcome))
    assert "first" not in json.loads((outcome.folder / "manifest.json").read_text(encoding="utf-8"))["files"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "stages: {reranked: reranked.jsonl@2",
            "stages: {reranked: othr@2",
            "; no system has this name (did you mean 'other'?)",
        ),
        ("jsonl@2, cited: cited.jsonl", "jsonl, b: other", "the system other is not run on dataset 'one'"),
        ("cited.jsonl}", "none.jsonl}", "systems.retrieved.stages.cited: file not found: "),
        ("reranked.jsonl@2", '"reranked.jsonl@0"', "stages.reranked: reranked.jsonl@0: expected a cutoff above 0"),
        (
            "path: retrieved.jsonl}",
            "path: retrieved.jsonl}, matrix: {path: [retrieved.jsonl, reranked.jsonl]}",
            "of a sweep",
        ),
    ],
)
def test_stages_that_an_experiment_refuses(old: str, new: str, expected: str, tmp_path: Path) -> None:
    path = staged(tmp_path)
    text = EXPERIMENT.replace(old, new, 1)
    if "b: other" in new:
        text = text.replace("datasets: {", "datasets: {two: {ground_truth: truth.jsonl}, ")
        text = text.replace("path: reranked.jsonl}}", "path: reranked.jsonl}, only: [two]}")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(groupgt.ConfigError) as error:
        groupgt.run_experiment(path)
    assert expected in str(error.value)


def test_trials_are_averaged() -> None:
    truth = {"q": [["a"], ["b"]], "r": [["c"]]}
    first = {"q": ["a", "b"], "r": ["x"]}
    second = groupgt.Run.of_trials(
        [groupgt.Run.of(trial) for trial in ({"q": ["a", "b"], "r": ["x"]}, {"q": ["a"], "r": ["c"]})]
    )
    found = groupgt.stages(truth, {"first": first, "second": second})
    # Trial 1 keeps a and b; trial 2 keeps a, loses b and gains c. c is lost at the first stage in trial 1.
    counts = [(each.covered, each.lost, each.gained, each.complete) for each in found.stages]
    assert counts == [(2, 0.5, 0, 1), (2, 0.5, 0.5, 1)]
    assert (found.trials, found.total, found.kept) == (2, 3, 2)
    assert [(each["trial"], each["lost"]) for each in found.groups if each["qid"] == "r"] == [(1, "first"), (2, None)]
    assert "groups on average over 2 trials" in str(found)
    with pytest.raises(
        groupgt.ConfigError, match="the same number of trials for each stage with trials, found first 3, second 2"
    ):
        groupgt.stages(truth, {"first": groupgt.Run.of_trials([groupgt.Run.of(first)] * 3), "second": second})
