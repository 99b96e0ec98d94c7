"""How far labellers and annotators agree, against tables counted by hand."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.curation.matching import group_pairs, matching
from tests.snapshots import Snapshot


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


def test_a_level_decides_what_annotators_call_relevant() -> None:
    first = {"q": [[{"id": "a", "grade": 1}], [{"id": "b", "grade": 2}]]}
    found = groupgt.agree(
        first, {"q": ["a", "b", "c"]}, other_truth={"q": [[{"id": "b", "grade": 2}]]}, policy="level=2"
    )
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 0, 0, 2)


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


def test_without_a_run_what_either_has_judged_is_looked_at(snapshot: Snapshot) -> None:
    first = {"q": [["a"], [{"id": "b", "grade": 0}]]}
    with snapshot.warns(groupgt.GroupgtWarning):
        found = groupgt.agree(first, other_truth={"q": [["a"], ["c"]]})
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 0, 1, 1)


def test_without_a_run_a_passage_of_several_groups_counts_once() -> None:
    judged = {"q": [["a"], ["a", "b"], [{"id": "n", "grade": 0}]]}
    found = groupgt.agree(judged, other_truth=judged)
    assert (found.both, found.only_first, found.only_second, found.neither) == (2, 0, 0, 1)


def test_every_result_counts_and_not_the_first_alone() -> None:
    """The second chunk of a parent hits as well, though a metric would call it a repeat."""
    parents = {"use": "parents", "with": {"pattern": "(.*)#[0-9]"}}
    found = groupgt.agree({"q": [["a#1"]]}, {"q": ["a#1", "a#2", "b#1"]}, labeller=parents, other_labeller="id")
    assert (found.both, found.only_first, found.only_second, found.neither) == (1, 1, 0, 1)


def test_what_cannot_be_asked(snapshot: Snapshot) -> None:
    truth = {"q": [["a"]]}
    with snapshot.raises(groupgt.ConfigError):
        groupgt.agree(truth, {"q": ["a"]})
    with snapshot.raises(groupgt.ConfigError):
        groupgt.agree(truth, other_labeller="text")
    with pytest.raises(groupgt.DataError, match="no query in common"):
        groupgt.agree(truth, {"q": ["a"]}, other_truth={"p": [["a"]]})
    with pytest.raises(groupgt.ConfigError, match="only judgments of ids"):
        groupgt.agree({"q": [[{"text": "a"}]]}, other_truth=truth)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: Snapshot) -> None:
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
    assert re.search(r"Cohen's kappa +0\.1667\n", shown)
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
    snapshot(capsys.readouterr().err)


def annotated(seed: int) -> tuple[dict[str, list[list[str]]], groupgt.GroundTruth]:
    """True groups, and what an annotator says who errs on a tenth of the passages and splits some groups."""
    rng = random.Random(f"{seed}")
    base = random.Random("truth")
    truth = {
        f"q{n}": [[f"d{n}-{g}-{m}" for m in range(base.randint(1, 4))] for g in range(base.randint(1, 4))]
        for n in range(40)
    }
    judged: dict[str, list[object]] = {}
    for qid, groups in truth.items():
        said: list[list[object]] = [[doc for doc in group if rng.random() > 0.1] for group in groups]
        if rng.random() < 0.3 and len(said[0]) > 1:
            said = [said[0][:1], said[0][1:], *said[1:]]
        others = [f"n{qid}-{at}" for at in range(8)]
        wrong = [doc for doc in others if rng.random() < 0.1]
        if wrong:
            said[-1] = [*said[-1], *wrong]
        relevant = {doc for group in said for doc in group}
        rest = [doc for doc in [*(doc for group in groups for doc in group), *others] if doc not in relevant]
        judged[qid] = [*[group for group in said if group], *([{"id": doc, "grade": 0}] for doc in rest)]
    return truth, groupgt.GroundTruth.of(judged)


def test_agreement_equals_that_of_the_libraries() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="the extra groupgt[retrieval] is not installed")
    krippendorff = pytest.importorskip("krippendorff", reason="the extra groupgt[peers] is not installed")
    (_, first), (_, second) = annotated(1), annotated(2)
    found = groupgt.agree(first, other_truth=second)
    labels: list[list[int]] = [[], []]
    of_groups: list[list[int]] = [[], []]
    for qid in first.qids:
        sides = [
            {
                each if isinstance(each, str) else each["id"]: isinstance(each, str)
                for group in truth[qid]
                for each in group
            }
            for truth in (first, second)
        ]
        docs = sorted(set(sides[0]) & set(sides[1]))
        for side, values in zip(sides, labels):
            values += [int(side[doc]) for doc in docs]
        groups = [[set(group) for group in truth.relevant(qid)] for truth in (first, second)]
        for one, two in best_pairs(*groups):
            for side, values in zip((one, two), of_groups):
                values += [int(doc in side) for doc in docs]
    assert found.kappa == pytest.approx(metrics.cohen_kappa_score(*labels), abs=1e-12)
    assert found.alpha == pytest.approx(krippendorff.alpha(labels, level_of_measurement="nominal"), abs=1e-12)
    assert found.group_kappa == pytest.approx(metrics.cohen_kappa_score(*of_groups), abs=1e-12)
    assert 0.5 < found.kappa < 1
    assert 0.5 < found.group_kappa < 1


def best_pairs(first: list[set[str]], second: list[set[str]]) -> list[tuple[set[str], set[str]]]:
    """The pairs of groups with the most shared passages, by trying all."""
    size = max(len(first), len(second))
    one, two = (groups + [set()] * (size - len(groups)) for groups in (first, second))
    best = max(itertools.permutations(two), key=lambda order: sum(len(a & b) for a, b in zip(one, order)))
    pairs = [(a, b) for a, b in zip(one, best) if a & b]
    pairs += [(a, set()) for a, b in zip(one, best) if a and not a & b]
    return pairs + [(set(), b) for a, b in zip(one, best) if b and not a & b]


def test_groups_are_matched_by_shared_passages() -> None:
    assert matching([{"a", "b"}, {"b"}], [{"b"}]) == [(0, 0), (1, None)]
    truths = [groupgt.GroundTruth.of({"q": groups}) for groups in ([["a", "b"], ["c"]], [["c"], ["a"], ["d"]])]
    assert [(pair.first, pair.second, pair.both) for pair in group_pairs(*truths)] == [
        ("group 1", "group 2", 1),
        (None, "group 3", 0),
        ("group 2", "group 1", 1),
    ]
