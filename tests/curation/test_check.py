"""What `check` counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.curation.check import check_run, check_truth
from groupgt.evaluation.request import Request
from groupgt.render.document import document
from groupgt.render.layout import Screen
from tests.snapshots import Snapshot


def test_check_counts_what_is_doubtful(tmp_path: Path) -> None:
    truth = groupgt.GroundTruth.of(
        {"q1": [["a", "b"], ["a"]], "q2": [["c"], ["c"]], "q3": [], "q4": [["Doc "], ["doc"]]}
    )
    found = {each.what.split(" (")[0]: each.count for each in check_truth(truth)}
    assert found["queries with two identical groups"] == 1
    assert found["queries with a group inside another"] == 1
    assert found["queries without ground truth"] == 1
    assert found["ids that differ in spaces, case or Unicode form"] == 1
    file = tmp_path / "run.trec"
    file.write_text("q1 Q0 a 1 2 t\nq1 Q0 x 2 1 t\nq1 Q0 x 3 1 t\nq9 Q0 x 1 1 t\n")
    run = {each.what.split(" (")[0]: each.count for each in check_run(truth, file, Request.of())}
    assert run["judged queries without results"] == 2
    assert run["queries with a repeated result"] == 1
    assert run["queries with a repeated relevant result"] == 0
    assert run["queries without ground truth"] == 1


def test_documents_are_counted_by_what_they_are_judged() -> None:
    truth = groupgt.GroundTruth.of(
        {
            "q1": [["a", "b"], ["a", {"id": "n", "grade": 0}], [{"id": "n", "grade": 0}]],
            "q2": [["c"], [{"id": "n", "grade": 0}], [{"id": "m", "grade": 0}]],
        }
    )
    found = {finding.what: (finding.count, finding.example) for finding in check_truth(truth)}
    assert found["groups"] == (3, "1 query with 1, 1 query with 2")
    assert found["alternatives"] == (4, "")
    assert found["relevant documents"] == (3, "1 to 2 a query, median 2")
    assert found["documents judged non-relevant"] == (3, "1 to 2 a query, median 2")
    assert found["groups without a relevant alternative"] == (3, "")
    assert found["documents in several groups of one query"] == (1, "a")


def test_check_and_evaluate_count_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    """Judged 0: b, z and w. Negative: c and y. q2 and q3 have nothing relevant, q4 is declared unanswerable."""
    grades = {"q1": {"a": 1, "b": 0, "c": -1}, "q2": {"z": 0}, "q3": {"y": -2, "w": 0}}
    qrels, nested, run = (tmp_path / name for name in ("qrels.txt", "truth.jsonl", "run.trec"))
    rows = [f"{qid} 0 {doc} {grade}\n" for qid, row in grades.items() for doc, grade in row.items()]
    qrels.write_text("".join(rows))
    groups = {qid: [[{"id": doc, "grade": grade}] for doc, grade in row.items()] for qid, row in grades.items()}
    lines = [{"qid": qid, "retrieval_gt": row} for qid, row in groups.items()]
    declared = {"qid": "q4", "retrieval_gt": [], "answerable": False}
    nested.write_text("".join(json.dumps(line) + "\n" for line in [*lines, declared]))
    run.write_text("q1 Q0 a 1 1 t\n")
    for truth, unanswerable in ((qrels, 0), (nested, 1)):
        counts = groupgt.evaluate(truth, run, ["map"]).counts
        assert (counts["undefined"], counts.get("unanswerable", 0), counts["negative"]) == (2, unanswerable, 2)
        found = {finding.what: finding for finding in check_truth(groupgt.read_ground_truth(truth))}
        assert found["documents judged non-relevant"].count == 3
        assert found["documents with a negative grade (unjudged)"].count == 2
        assert found["queries without ground truth (undefined)"].example == "q2, q3"
        assert found["queries declared unanswerable"].count == unanswerable
    main(["evaluate", str(qrels), str(run), "-m", "map"])
    assert "evaluated 1, undefined 2, judged non-relevant 3, negative grades 2\n" in capsys.readouterr().out
    # As groups, the five documents that are not relevant are groups that nothing covers.
    main(["evaluate", str(nested), str(run), "-m", "map"])
    shown = capsys.readouterr().out
    snapshot(shown)


def test_groups_that_cannot_be_met_are_counted_whatever_the_policy() -> None:
    groups = {"q": [["a"], {"alternatives": [{"id": "b", "grade": 0}], "name": "refuted"}]}
    for empty_groups, seen in (("error", 1), ("unmeetable", 2)):
        truth = groupgt.GroundTruth.of(groups, groupgt.Policy(empty_groups=empty_groups))
        found = {finding.what: finding for finding in check_truth(truth)}
        assert found["groups"].count == seen
        assert found["groups without a relevant alternative"].count == 1


def test_a_set_is_one_alternative() -> None:
    both = {"all": ["a", "b"]}
    groups = {
        "differ": [[both], ["a", "b"]],
        "equal": [[both, "c"], ["c", {"all": ["b", "a"]}]],
        "inside": [[both], [both, {"all": ["a", "c"]}]],
        "alone": [[both, {"all": ["a", "c"]}]],
    }
    found = {finding.what: finding for finding in check_truth(groupgt.GroundTruth.of(groups))}
    assert found["alternatives"].count == 3 + 4 + 3 + 2
    assert found["alternatives that are sets needed together"].count == 1 + 2 + 3 + 2
    assert found["queries with two identical groups"].example == "equal"
    assert found["queries with a group inside another"].example == "inside"
    assert found["documents in several groups of one query"].example == "a, b, c"
    shared = groupgt.GroundTruth.of({"alone": groups["alone"]})
    assert all(finding.count == 0 for finding in check_truth(shared) if "several groups" in finding.what)
    plain = {finding.what for finding in check_truth(groupgt.GroundTruth.of({"q": [["a"]]}))}
    assert "alternatives that are sets needed together" not in plain


def test_nested_groups_are_counted_beside_equal_ones() -> None:
    both, one = [["a"], ["a"], ["a", "b"]], [["c"], ["d", "c"], ["e"]]
    found = {each.what: each for each in check_truth(groupgt.GroundTruth.of({"both": both, "one": one}))}
    assert found["queries with two identical groups"].example == "both"
    assert found["queries with a group inside another"].example == "both, one"


def test_one_question_with_two_truths_is_counted(tmp_path: Path) -> None:
    """`c` repeats the first, with the same truth in another order."""
    rows = (
        ("a", "Where is  it?", [["x"], ["y"]]),
        ("b", "where is it?", [["y"]]),
        ("c", "Where is it?", [["y"], ["x"]]),
    )
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps(dict(zip(("qid", "query", "retrieval_gt"), row))) + "\n" for row in rows))
    found = [each for each in check_truth(groupgt.read_ground_truth(table)) if "same text" in each.what]
    assert [(each.count, each.example, each.suspicious) for each in found] == [
        (1, "a and c", True),
        (1, "a and b", True),
    ]


@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_ids_that_nearly_match_are_counted() -> None:
    """Two documents differ in case, and so does the query `R`; none of them fails the check."""
    truth = {"q": [["d1"], ["d2"], ["d3"]], "r": [["d1"]]}
    found = groupgt.check(truth, {"q": ["D1", "D2", "d3"], "R": ["d3"]})
    (near,) = (each for each in found.findings["run"] if "nearly" in each.what)
    assert (near.count, near.example, near.suspicious, near.fails) == (3, "'r' and 'R'", True, False)


def test_cells_are_short() -> None:
    truth = groupgt.GroundTruth.of(
        {f"q{n}": [[f"{'x' * 300}{n}"], *([f"{place}"] for place in range(n))] for n in range(50)}
    )
    findings = [*check_truth(truth), *check_run(truth, {f"q{n}": ["0"] for n in range(50)}, Request.of())]
    assert max(len(each.example) for each in findings) < 140
    assert max(len(each.what) for each in findings) < 50
    assert next(each.example for each in findings if each.what == "groups") == "1 to 50 a query, median 26"


def test_ids_that_are_not_in_the_corpus(snapshot: Snapshot) -> None:
    truth, corpus = {"q1": [["a", "b"]], "q2": [["c"], ["B "]]}, {"a": "one", "b": "two"}
    with pytest.warns(groupgt.GroupgtWarning, match="2 ground truth ids are not in the corpus"):
        found = groupgt.check(truth, corpus=corpus).findings["truth"]
    (absent,) = [each for each in found if "not in the corpus" in each.what]
    assert (absent.count, absent.example) == (2, "c, B ")
    with pytest.warns(groupgt.GroupgtWarning, match="never be retrieved: 'B '; the corpus has 'b'"):
        found = groupgt.check({"q": [["B "]]}, corpus=corpus).findings["truth"]
    (near,) = [each for each in found if "not in the corpus" in each.what]
    snapshot(near.example)
    assert not any("not in the corpus" in each.what for each in groupgt.check(truth).findings["truth"])


def test_the_command_counts_them_too(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
    (tmp_path / "truth.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"], ["b"]]}\n')
    (tmp_path / "corpus.jsonl").write_text('{"doc_id": "a", "contents": "one"}\n')
    words = ["check", str(tmp_path / "truth.jsonl"), "--corpus", str(tmp_path / "corpus.jsonl"), "--format", "csv"]
    with pytest.raises(SystemExit, match=r"^1$"):
        main(words)
    shown = capsys.readouterr().out
    snapshot(shown)
    main([*words, "--exit-zero"])
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("truth", "run", "options", "fails"),
    [
        ({"q": [["a"], []]}, {"q": ["a"]}, {"policy": {"empty_groups": "drop"}}, True),
        ({"q": [["a", "a"]]}, {"q": ["a"]}, {}, True),
        ({"q": [["a"]]}, {"q": ["x", "x"]}, {}, True),
        ({"q": [["a"]]}, {"q": [("a", 0.1), ("b", 0.9)]}, {}, True),
        ({"q": [["a"]]}, {"q": ["a"]}, {"corpus": {"b": "two"}}, True),
        ({"q": [["a"]]}, {"q": ["a"]}, {"corpus": {"a": " "}}, True),
        ({"q": [["a"], ["a", "b"]], "r": [["c"]]}, {"q": ["x"]}, {}, False),
        ({"q": [["Ab"], ["ab"]]}, {"q": ["ab"]}, {}, False),
    ],
    ids=["empty group", "repeated id", "repeated result", "distances", "absent id", "blank passage", "nested", "case"],
)
@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_what_fails(truth: Any, run: Any, options: dict[str, Any], fails: bool) -> None:
    found = groupgt.check(truth, run, **options)
    assert bool(found.fails) == fails
    assert found.problems.keys() >= found.fails.keys()


def test_a_verdict_counts_problems_by_kind(snapshot: Snapshot) -> None:
    sound = groupgt.check({"q": [["a"]], "r": []}, {"q": ["a", "b"]})
    assert (sound.problems, sound.undefined) == ({}, 1)
    run = {"q": ["x", "x"], "r": ["y", "y"]}
    bad = groupgt.check({"q": [["a"], ["a"]], "r": [], "s": []}, {"one": run, "other": run})
    assert bad.problems == {"queries with two identical groups": 1, "queries with a repeated result": 4}
    assert bad.undefined == 2
    snapshot("\n".join(str(each.blocks()[0]) for each in (sound, bad)))


def test_passages_without_text(snapshot: Snapshot) -> None:
    corpus = {"a": "one", "b": " \n", "c": "", "d": ""}
    with snapshot.warns(groupgt.GroupgtWarning):
        findings = groupgt.check({"q": [["a", "b"], ["c"]], "r": [["b"]]}, corpus=corpus).findings["truth"]
    assert [(each.count, each.example) for each in findings if "without contents" in each.what] == [(3, "b, c, d")]
    unjudged = groupgt.check({"q": [["a"]]}, corpus=corpus)
    assert unjudged.fails == {"passages without contents": 3}
    assert groupgt.check({"q": [["a"]]}, corpus={"a": "one"}).fails == {}


def test_a_null_in_a_corpus_is_told_as_one(tmp_path: Path) -> None:
    """An empty text, as advised, is a passage without contents."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"doc_id": "a", "contents": null}\n')
    with pytest.raises(groupgt.DataError, match='contents column, found None; for a passage without text, write ""'):
        groupgt.check({"q1": ["a"]}, corpus=path)
    path.write_text('{"doc_id": "a", "contents": ""}\n')
    with pytest.warns(groupgt.GroupgtWarning, match="no contents"):
        assert groupgt.check({"q1": ["a"]}, corpus=path).fails == {"passages without contents": 1}


def test_empty_groups_and_blank_ids_fail_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """q has an empty group, p one that is also empty without its blank id, r a group with one id left."""
    groups = {"q": [["a"], []], "p": [["a"], [""]], "r": [["b", " "]]}
    fails = {"groups dropped because they were empty": 2, "groups with a blank id": 1}
    file, experiment = tmp_path / "truth.jsonl", tmp_path / "e.yaml"
    rows = [{"qid": qid, "query": qid, "retrieval_gt": row} for qid, row in groups.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    experiment.write_text(
        "version: 1\nname: e\ndatasets: {d: {ground_truth: truth.jsonl}}\n"
        "systems: {s: {use: results, with: {path: r}}}\nevaluate: {metrics: [recall]}\n"
    )
    (tmp_path / "r").write_text("q Q0 a 1 1 t\n")
    for truth in (groups, file):
        found = groupgt.check(truth)
        assert found.fails == fails
        (of_truth,) = found.findings.values()
        assert [each.example for each in of_truth if each.fails and each.count] == ["q, p", "r"]
        with pytest.raises(groupgt.DataError):
            groupgt.evaluate(truth, {"q": ["a"]}, ["recall"])
    for path, key in ((file, None), (experiment, "d")):
        with pytest.raises(SystemExit, match="1"):
            main(["check", str(path), "--format", "json"])
        shown = json.loads(capsys.readouterr().out)["fails"]
        assert (shown if key is None else shown[key]) == fails
        main(["check", str(path), "--exit-zero", "--format", "json"])
        assert "Failed" in capsys.readouterr().out


def test_only_what_is_found_is_shown_and_ids_keep_their_ends(snapshot: Snapshot) -> None:
    gone = "support-centre/articles-of-2026/GDPR-deletion/article-0635#chunk-05"
    truth = {"q1": [["a"], ["a", gone]], "q2": [["c"]], "q3": []}
    runs = {name: {"q1": ["x", "a"], "q2": ["y"]} for name in ("hybrid-rrf60+bge-reranker-v2-m3-top50", "dense")}
    with pytest.warns(groupgt.GroupgtWarning, match="not in the corpus"):
        found = groupgt.check(truth, runs, corpus=dict.fromkeys("acxy", "text"))
    hidden = document(found.blocks(), screen=Screen(80, details=False))
    snapshot(hidden)
    assert max(map(len, hidden.split("\n"))) <= 80
    assert "queries with two identical groups" not in hidden
    assert "queries with two identical groups" in document(found.blocks(), screen=Screen(80))
