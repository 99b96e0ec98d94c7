"""How far labellers and annotators agree, against tables counted by hand."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main


def test_two_annotators_by_hand() -> None:
    first, second = {"q": [["a"], ["b"]], "mine": [["a"]]}, {"q": [["a", "c"]], "yours": [["a"]]}
    found = groupgt.agree(first, {"q": ["a", "b", "c", "d", "e"], "mine": ["a"]}, other_truth=second)
    # a: both; b: the first; c: the second; d, e: neither. p_o = 3/5; both say yes to 2 of 5.
    assert (found.both, found.only_first, found.only_second, found.neither, found.queries) == (1, 1, 1, 2, 1)
    chance = (2 / 5) ** 2 + (3 / 5) ** 2
    assert found.kappa == pytest.approx((3 / 5 - chance) / (1 - chance))
    assert found.positive == pytest.approx(2 * 1 / 4)
    assert found.groups == [
        {"qid": "q", "annotator": 1, "group": "group 2", "both": 0, "only_first": 1, "only_second": 0},
        {"qid": "q", "annotator": 2, "group": "group 1", "both": 1, "only_first": 0, "only_second": 1},
        {"qid": "q", "annotator": 1, "group": "group 1", "both": 1, "only_first": 0, "only_second": 0},
    ]


def test_two_labellers_by_hand() -> None:
    truth = {"q": [[{"text": "red fox"}], [{"text": "blue"}]], "none": [], "silent": [[{"text": "x"}]]}
    run = {"q": [{"id": "1", "text": "a red fox"}, {"id": "2", "text": "a fox, red"}, {"id": "3", "text": "blue red"}]}
    other = {"use": "text", "with": {"method": "token_recall", "threshold": 0.5}}
    found = groupgt.agree(truth, run, labeller="text", other_labeller=other)
    # Contained: 1 has red fox, 3 has blue. By half of the words: 1, 2 and 3 have red fox's, 3 has blue.
    assert (found.both, found.only_first, found.only_second, found.neither) == (2, 0, 2, 2)
    assert (found.items, found.queries) == (6, 1)
    assert found.groups[0] == {"qid": "q", "group": "group 1", "both": 1, "only_first": 0, "only_second": 2}


def test_kappa_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the extra groupgt[retrieval] is not installed")
    rng = random.Random(5)
    for _ in range(30):
        ids = [f"d{number}" for number in range(rng.randint(3, 40))]
        pair = [{"q": [[name] for name in ids if rng.random() < 0.4] or [[ids[0]]]} for _ in range(2)]
        found = groupgt.agree(pair[0], {"q": ids}, other_truth=pair[1])
        calls = [[int([name] in each["q"]) for name in ids] for each in pair]
        if len(set(calls[0])) == 1 and calls[0] == calls[1]:
            assert math.isnan(found.kappa)
        else:
            assert found.kappa == pytest.approx(metrics.cohen_kappa_score(*calls), abs=1e-12)


def test_without_a_run_what_either_has_judged_is_looked_at() -> None:
    first = {"q": [["a"], [{"id": "b", "grade": 0}]]}
    with pytest.warns(groupgt.GroupgtWarning, match="kappa is lower than over all results"):
        found = groupgt.agree(first, other_truth={"q": [["a"], ["c"]]})
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 0, 1, 1)


def test_every_result_counts_and_not_the_first_alone() -> None:
    """The second chunk of a parent hits as well, though a metric would call it a repeat."""
    parents = {"use": "parents", "with": {"pattern": "(.*)#[0-9]"}}
    found = groupgt.agree({"q": [["a#1"]]}, {"q": ["a#1", "a#2", "b#1"]}, labeller=parents, other_labeller="id")
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 0, 1)


def test_what_cannot_be_asked() -> None:
    truth = {"q": [["a"]]}
    with pytest.raises(groupgt.ConfigError, match=r"expected another labeller \(--other\), or another ground truth"):
        groupgt.agree(truth, {"q": ["a"]})
    with pytest.raises(groupgt.ConfigError, match="comparing labellers requires a run"):
        groupgt.agree(truth, other_labeller="text")
    with pytest.raises(groupgt.DataError, match="no query in common"):
        groupgt.agree(truth, {"q": ["a"]}, other_truth={"p": [["a"]]})
    with pytest.raises(groupgt.ConfigError, match="only judgments of ids"):
        groupgt.agree({"q": [[{"text": "a"}]]}, other_truth=truth)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, groups in (("one", [["a"], ["b"]]), ("two", [["a", "c"]])):
        row = json.dumps({"qid": "q", "retrieval_gt": groups})
        (tmp_path / f"{name}.jsonl").write_text(row, encoding="utf-8")
    (tmp_path / "run.jsonl").write_text(json.dumps({"qid": "q", "retrieved_ids": list("abcde")}), encoding="utf-8")
    one, two, run, groups_file = (
        str(tmp_path / name) for name in ("one.jsonl", "two.jsonl", "run.jsonl", "groups.csv")
    )
    main(["agree", one, run, "--annotator", two, "--groups", groups_file])
    shown = capsys.readouterr().out
    assert f"first: {one}" in shown
    assert "Cohen's kappa        0.1667" in shown
    lines = Path(groups_file).read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["qid,annotator,group,both,only_first,only_second", "q,1,group 2,0,1,0"]
    main(["agree", one, run, "--annotator", two, "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["items"], told["both"], told["observed"]) == (5, 1, 0.6)
    main(["agree", one, run, "--annotator", two, "--format", "csv"])
    assert capsys.readouterr().out.startswith("first,second,of,queries,items,both")
    with pytest.raises(SystemExit) as end:
        main(["agree", one, run])
    assert end.value.code == 2
    assert "expected another labeller (--other)" in capsys.readouterr().err
