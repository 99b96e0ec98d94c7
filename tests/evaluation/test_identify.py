"""Which metric, convention, cutoff and policy give a number: named, with all that give it too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.main import main

pytestmark = pytest.mark.slow

# Reciprocal ranks 1, 1/2, 0 and 1/4 of the first relevant document; q3 finds nothing.
TRUTH = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}, "q3": {"d": 1}, "q4": {"e": 3, "f": 1}}
RUN = {"q1": ["a", "x", "b"], "q2": ["x", "c"], "q3": ["x", "y"], "q4": ["x", "y", "z", "e"]}


def test_a_number_is_named() -> None:
    """MRR is (1 + 1/2 + 0 + 1/4) / 4 = .4375, and @3 it is (1 + 1/2) / 4 = .375."""
    found = groupgt.identify(TRUTH, RUN, ".4375", ["mrr"])
    assert (found.matches[0].metric, found.matches[0].value, found.matches[0].queries) == ("mrr.trec", 0.4375, 4)
    assert groupgt.identify(TRUTH, RUN, 0.375, ["mrr"]).matches[0].metric == "mrr.trec@3"
    assert groupgt.identify(TRUTH, RUN, "43.75%", ["recip_rank"]).matches == found.matches


def test_few_digits_have_many_explanations() -> None:
    few, many = (groupgt.identify(TRUTH, RUN, number) for number in (".4", ".4375"))
    assert len(few.matches) > len(many.matches) >= 1
    assert few.chance > many.chance
    assert few.tried == many.tried > 100
    assert f"and so do {len(few.matches) - 1} other settings" in str(few)


def test_what_other_tools_compute_is_known() -> None:
    """AP@1 divided by min(1, relevant): 1, 0, 0 and 0 make .25; F1@3 of means: P 3/12, R (1+1+0+0)/4 make .3333."""
    capped = groupgt.identify(TRUTH, RUN, ".2500", ["map"])
    assert "AP@1 divided by min(k, relevant)" in [name for each in capped.matches for name in (each.metric, *each.also)]
    means = groupgt.identify(TRUTH, RUN, ".3333", ["f1"])
    assert "F1 of the mean precision@3 and the mean recall@3" in [each.metric for each in means.matches]


def test_graded_rbp_is_tried() -> None:
    """With p = .5 and the highest grade 3: 1/3 · 1/2 + 2/3 · 1/8, 1/3 · 1/4, 0 and 3/3 · 1/16 make .0990."""
    graded = groupgt.identify(TRUTH, RUN, ".0990", ["rbp"]).matches[0]
    assert graded.metric == "rbp(graded=True, p=0.5)"
    # Over the highest grade of each query they are 1/2 · 1/2 + 1/8, 1/4, 0 and 1/16: .1719
    own = groupgt.identify(TRUTH, RUN, ".1719", ["rbp"]).matches
    assert "rbp(p=0.5) times grades ÷ each query's highest" in [each.metric for each in own]


def test_policies_are_tried() -> None:
    """Without unjudged results e is first: (1 + 1 + 0 + 1) / 4; over the queries that are in the run, 3 of 4."""
    truth = {qid: {**own, "n": 0} for qid, own in TRUTH.items()}
    found = groupgt.identify(truth, RUN, ".7500", ["mrr"])
    assert ("mrr.trec", "unjudged=drop") in [(each.metric, each.policy) for each in found.matches]
    fewer = {qid: RUN[qid] for qid in ("q1", "q2", "q4")}
    over = groupgt.identify(TRUTH, fewer, ".5833", ["mrr"]).matches[0]
    assert (over.metric, over.over, over.queries) == ("mrr.trec", "queries that are in the run", 3)
    graded = groupgt.identify(TRUTH, RUN, ".2917", ["mrr"]).matches
    # Of grade 2 are b of q1, at rank 3, and e of q4, at rank 4: (1/3 + 1/4) / 2.
    assert ("mrr.trec", "level=2", "queries with a relevant document") in [
        (each.metric, each.policy, each.over) for each in graded
    ]


def test_nothing_is_said_to_be_what_it_is_not() -> None:
    found = groupgt.identify(TRUTH, RUN, ".98765")
    assert found.matches == ()
    text = str(found)
    assert "No setting gives .98765" in text
    assert "nearest to it" in text
    alone = groupgt.identify(TRUTH, RUN, ".4375", ["mrr"])
    assert len(alone.matches) == 1
    assert "nearest to it" in str(alone)


def test_ground_truth_with_sets() -> None:
    """Only metrics that support sets are tried: recall is (1/2 + 1) / 2."""
    truth = {"q1": [[{"all": ["a", "b"]}, "s"], ["c"]], "q2": [["d"]]}
    run = {"q1": ["a", "b", "x"], "q2": ["d"]}
    for metrics in ([], ["recall"]):
        assert groupgt.identify(truth, run, ".7500", metrics).matches[0].metric.startswith("recall.autorag")


@pytest.mark.parametrize("number", ["", "x", "1.2.3", "-1", "."])
def test_what_is_no_number(number: str) -> None:
    with pytest.raises(groupgt.ConfigError, match="number: expected a number such as"):
        groupgt.identify(TRUTH, RUN, number)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ("examples/first/truth.jsonl", "examples/first/bm25.trec")
    main(["identify", *files, ".8333", "-m", "recall"])
    out = capsys.readouterr().out
    assert "gives .8333 on this data" in out
    main(["identify", *files, ".8333", "-m", "recall", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    assert found["number"] == ".8333"
    assert found["matches"][0]["metric"].startswith("recall")
    main(["identify", *files, ".8333", "--format", "csv"])
    assert capsys.readouterr().out.startswith("gives_it,metric,policy,mean_over,value,queries")
    with pytest.raises(SystemExit):
        main(["identify", *files, "abc"])
    assert "number: expected a number such as 0.6131 or 61.3%, found 'abc'" in capsys.readouterr().err


def test_the_policy_given_is_tried_with_the_others() -> None:
    truth = {"q": [[{"id": "a", "grade": 2}], [{"id": "b", "grade": 1}], [{"id": "n", "grade": 0}]]}
    run = {"q": ["u", "v", "b", "a"]}
    # With both settings, a has rank 2; with one or none, the first relevant result has rank 4, 1 or 3.
    assert "mrr.autorag" not in [each.metric for each in groupgt.identify(truth, run, "0.5000", ["mrr"]).matches]
    match = groupgt.identify(truth, run, "0.5000", ["mrr"], policy="level=2,unjudged=drop").matches[0]
    assert (match.metric, match.policy) == ("mrr.autorag", "unjudged=drop, level=2")
    with pytest.raises(TypeError, match="convention"):
        groupgt.identify(truth, run, "0.5", convention="trec")  # type: ignore[call-arg]
    with pytest.raises(groupgt.DataError):
        groupgt.identify(truth, {**run, "z": ["a"]}, "0.5", policy="extra=error")
