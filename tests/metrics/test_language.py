"""The metric language: what is read, how it prints, what is refused and with which words."""

from __future__ import annotations

import pytest

import groupgt
from groupgt import MetricError, parse_metric
from groupgt.metrics.language import Budget, parse_metrics, split_names, warn_of_idle_cutoffs
from tests.snapshots import Snapshot


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("recall@5", "recall.autorag@5"),
        ("ndcg.coverage@10", "ndcg.coverage@10"),
        ("rbp(p=0.95)@20", "rbp(p=0.95)@20"),
        ("rbp(p=0.8)", "rbp"),
        ("map", "map.autorag"),
        ("map@all", "map.autorag"),
        ("ndcg.trec( gain = exp )@3", "ndcg.trec(gain=exp)@3"),
        ("ndcg.trec(gain=linear)", "ndcg.trec"),
        ("nrbp(beta=.9,alpha=1e-1)", "nrbp(alpha=0.1, beta=0.9)"),
        ("alpha_ndcg(alpha=1)", "alpha_ndcg(alpha=1)"),
        ("recall@1000000000000", "recall.autorag@1000000000000"),
        ("recall@2000tokens", "recall.autorag@2000tokens"),
        ("complete@8000chars", "complete.autorag@8000chars"),
        ("p@5", "precision.autorag@5"),
        ("r", "recall.autorag"),
        ("rr", "mrr.autorag"),
        ("rr.trec@3", "mrr.trec@3"),
        ("ap", "map.autorag"),
        ("success", "hit_rate.autorag"),
        ("full_recall", "complete.autorag"),
        ("strec@5", "recall.coverage@5"),
        ("s_recall", "recall.coverage"),
        ("ndcg_burges@5", "ndcg.trec(gain=exp)@5"),
        ("r-precision", "r_precision"),
        ("retrieval_ndcg@3", "ndcg.autorag@3"),
        ("retrieval_full_recall", "complete.autorag"),
        ("retrieval_err@3", "err@3"),
        ("P_5", "precision.trec@5"),
        ("recall_5", "recall.trec@5"),
        ("ndcg_cut_10", "ndcg.trec@10"),
        ("map_cut_10", "map.trec@10"),
        ("success_5", "hit_rate.trec@5"),
        ("recip_rank", "mrr.trec"),
        ("Rprec", "r_precision"),
        (" recall@5 ", "recall.autorag@5"),
        # ir_measures and ranx, in any case: the convention in force.
        ("nDCG@10", "ndcg.autorag@10"),
        ("AP", "map.autorag"),
        ("RR@10", "mrr.autorag@10"),
        ("P@5", "precision.autorag@5"),
        ("R@5", "recall.autorag@5"),
        ("Success@5", "hit_rate.autorag@5"),
        ("MAP@100", "map.autorag@100"),
        ("alpha_nDCG(alpha=0.3)@10", "alpha_ndcg(alpha=0.3)@10"),
        ("AP_IA", "map_ia"),
        ("StRecall@5", "recall.coverage@5"),
        ("rbp.95@10", "rbp(p=0.95)@10"),
        ("dcg_burges", "dcg(gain=exp)"),
        # Only trec_eval's own names, with underscores, mean its convention; case changes nothing.
        ("p_5", "precision.trec@5"),
        ("NDCG_CUT_10", "ndcg.trec@10"),
        ("RECIP_RANK", "mrr.trec"),
        ("P.5", "precision.trec@5"),
        ("ndcg_cut.10", "ndcg.trec@10"),
        ("iprec@0.1", "iprec(recall=0.1)"),
        ("IPrec@0", "iprec"),
        ("iprec(version=10)@0.1", "iprec(recall=0.1, version=10)"),
        ("iprec(recall=.1,version=9)", "iprec(recall=0.1)"),
        ("rbp(p=0.5,graded=True)@10", "rbp(graded=True, p=0.5)@10"),
        ("recall_any@5", "hit_rate.autorag@5"),
        ("hit_any", "hit_rate.autorag"),
        ("Recall_All@2", "complete.autorag@2"),
        ("hit_all.trec@2", "complete.trec@2"),
        ("iprec_at_recall_0.10", "iprec(recall=0.1)"),
        ("set_P", "precision.trec"),
        ("SetR", "recall.trec"),
        ("set_F", "f1.trec"),
        ("num_rel_ret", "hits"),
        ("NumRet", "num_ret"),
        ("judged(negative=True)@3", "judged(negative=True)@3"),
    ],
)
def test_reads(text: str, canonical: str) -> None:
    metric = parse_metric(text)
    assert str(metric) == canonical
    assert parse_metric(str(metric), "trec") == metric


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ndgc@5", "did you mean 'ndcg'"),
        ("completion_rank@5", "did you mean 'completion_rr'"),
        ("recall@5@10", "found @5@10"),
        ("recall@", "cutoff"),
        ("recall@1.5", "cutoff"),
        ("recall@٣", "cutoff"),
        ("recall@9999999999999999999", "cutoff"),
        ("bpref@5", "takes no cutoff"),
        ("iprec(version=8)", "version: expected 9 or 10, found '8'"),
        ("iprec(recall=0.1)@0.2", "duplicate parameter recall"),
        ("rbp(graded=yes)", "graded: expected True or False, found 'yes'"),
        ("recall_micro@5", "micro-average pools the documents of all queries"),
        ("recall_micro@5", "Write recall.trec@5 for a mean over queries, or divide the mean of hits@5 by"),
        ("micro_recall", "or divide the mean of hits by the mean of num_rel"),
        ("precision_micro@5", "Write precision.trec@K, whose mean is the same"),
        ("micro_precision", "micro-average pools the documents of all queries"),
        ("rbp_p5", "did you mean 'rbp(graded=True, p=0.5)'"),
        ("recall_any_at_5", "did you mean 'recall_any@5'"),
        ("iprec@1.5", "recall: expected a number from 0 to 1, found 1.5"),
        ("set_P@5", "set_p means precision.trec@all and takes no further parameters"),
        ("judged(negative=yes)", "expected True or False"),
        ("err.trec", "is the same under all conventions"),
        ("ndcg.trek", "did you mean 'trec'"),
        ("rbp(p=1)", "above 0 and below 1"),
        ("rbp(p=0)", "above 0 and below 1"),
        ("rbp(p=nan)", "above 0 and below 1"),
        ("rbp(p=1_0)", "above 0 and below 1"),
        ("rbp(q=0.5)", "no parameter 'q'"),
        ("rbp(p=0.5, p=0.6)", "duplicate parameter p"),
        ("rbp(p)", "parameter=value"),
        ("rbp()", "no brackets"),
        ("alpha_ndcg(alpha=1.01)", "from 0 to 1"),
        ("nrbp(beta=0)", "above 0 and below 1"),
        ("err(max_grade=0)", "above 0"),
        ("ndcg(gain=exp)", "it has no parameters"),
        ("ndcg.trec(gain=cubic)", "linear"),
        ("strec.trec", "takes only a cutoff"),
        ("ndcg_burges(gain=exp)", "takes only a cutoff"),
        ("rr(p=1)", "mrr has no parameter 'p': it has no parameters"),
        ("ndcg(gan=exp)", "ndcg has no parameter 'gan': its parameters are gain (did you mean 'gain'?)"),
        (
            "ndcg.autorag(gain=exp)",
            "ndcg.autorag has no parameter 'gain': it has no parameters; ndcg.trec and",
        ),
        # What ir_measures writes as parameters.
        ("P(judged_only=yes)@5", "judged_only: expected True or False, found yes"),
        ("nDCG(dcg='exp-log2')@10", "write ndcg.trec(gain=exp)@10"),
        ("nDCG(dcg='log2')", "its parameters are gain; write ndcg.trec"),
        ("P(cutoff=5)", "write P@5"),
        # Names and cutoffs of other tools.
        ("hit@5", "unknown metric 'hit' (did you mean 'hit_rate@5'?)"),
        ("any_hit@5", "unknown metric 'any_hit' (did you mean 'hit_rate@5'?)"),
        ("perfect_recall@5", "unknown metric 'perfect_recall' (did you mean 'complete@5'?)"),
        ("recall_macro@5", "unknown metric 'recall_macro' (did you mean 'recall@5'?)"),
        ("hr@5", "did you mean 'hit_rate@5'"),
        ("accuracy@5", "did you mean 'hit_rate@5'"),
        ("hits_at_5", "did you mean 'hit_rate@5'"),
        ("mrr_at_10", "did you mean 'mrr@10'"),
        ("recall_at_5", "did you mean 'recall@5'"),
        ("f1_at_3", "did you mean 'f1@3'"),
        ("MRR10", "did you mean 'mrr@10'"),
        ("P-at-5", "`groupgt list metrics` lists them all"),
        ("recall@0", "the cutoff must be at least 1, found @0"),
        ("recall@-1", "the cutoff must be at least 1, found @-1"),
        ("P_0", "the cutoff must be at least 1, found @0"),
        ("recall@0tokens", "the cutoff must be at least 1, found @0tokens"),
        ("rbp(x=1)", ": rbp has no parameter 'x'"),
        ("retrieval_nothing", "unknown metric"),
        ("rbp(p=)", "parameter=value"),
        ("retrieval_map.trec", "imply its convention"),
        ("", "expected name"),
        ("recall@5 ndcg", "cutoff"),
        ("recall)(", "expected name"),
    ],
)
def test_refuses(text: str, words: str) -> None:
    with pytest.raises(MetricError, match=None) as caught:
        parse_metric(text)
    assert words in str(caught.value)
    assert repr(text) in str(caught.value)


def test_a_bare_name_takes_the_convention_in_force() -> None:
    assert str(parse_metric("ndcg", "coverage")) == "ndcg.coverage"
    assert str(parse_metric("ndcg.trec", "coverage")) == "ndcg.trec"
    with pytest.raises(MetricError, match="did you mean 'coverage'"):
        parse_metric("ndcg", "coverge")


def test_auto_takes_the_first_convention_that_has_the_parameters() -> None:
    """The convention is only known once the ground truth is read, which may come later."""
    assert [
        str(metric) for metric in parse_metrics(["ndcg", "ndcg(gain=exp)@3", "mrr.trec", "err"], "auto").values()
    ] == [*("ndcg.autorag", "ndcg.trec(gain=exp)@3", "mrr.trec", "err")]
    with pytest.raises(MetricError, match="ndcg has no parameter 'gan': its parameters are gain"):
        parse_metrics(["ndcg(gan=exp)"], "auto")


def test_ks_are_for_metrics_without_a_cutoff_of_their_own() -> None:
    assert list(parse_metrics(["set_P", "recall"], "trec", [5])) == ["set_P", "recall@5"]
    assert list(parse_metrics(["IPREC11", "map"], "trec"))[::4] == ["iprec@0", "iprec@0.4", "iprec@0.8"]
    assert len(parse_metrics(["official"], "autorag")) == 28
    found = parse_metrics(["recall", "ndcg@3", "map@all", "bpref", "P_5"], "autorag", [1, 10])
    assert list(found) == ["recall@1", "recall@10", "ndcg@3", "map@all", "bpref", "P_5"]
    assert [str(metric) for metric in found.values()][2:] == [
        "ndcg.autorag@3",
        "map.autorag",
        "bpref",
        "precision.trec@5",
    ]


def test_the_range_of_k() -> None:
    assert [metric.cutoff for metric in parse_metrics(["recall"], "autorag", [1, 10**15]).values()] == [1, 10**15]
    assert parse_metric("recall@1000000000000000").cutoff == 10**15
    for k in (0, 10**15 + 1, True, 1.0, "1"):
        with pytest.raises(MetricError, match=r"^k: expected whole numbers from 1 to 10\^15, found"):
            parse_metrics(["recall"], "autorag", [k])  # type: ignore[list-item]
    for text in ("recall@1000000000000001", "recall@00000000000000001"):
        with pytest.raises(MetricError, match="cutoff"):
            parse_metric(text)


@pytest.mark.parametrize(
    ("max_grade", "text"),
    [
        ("3", "3"),
        ("3.0", "3"),
        ("3.5", "3.5"),
        ("+6", "6"),
    ],
)
def test_numbers_are_written_the_short_way(max_grade: str, text: str) -> None:
    metric = parse_metric(f"err(max_grade={max_grade})")
    assert str(metric) == f"err(max_grade={text})"
    assert parse_metric(str(metric)) == metric


def test_a_cut_at_hand_is_the_one_that_counts() -> None:
    hits = groupgt.evaluate({"q": [["a"], ["b"]]}, {"q": ["a", "b"]}, ["recall"]).labelled.hits
    metric = parse_metric("recall")
    assert metric.values(hits).tolist() == [1.0]
    assert metric.values(hits, parse_metric("recall@1").cut(hits)).tolist() == [0.5]


def test_what_is_read_already_stays_and_what_is_no_text_is_refused() -> None:
    metric = parse_metric("recall@5")
    assert parse_metric(metric, "trec") is metric
    with pytest.raises(MetricError, match="expected a metric's name as text, found 5"):
        parse_metric(5)  # type: ignore[arg-type]
    with pytest.raises(MetricError, match=r"convention: expected autorag, trec or coverage, found \['trec'\]$"):
        parse_metric("recall", ["trec"])  # type: ignore[arg-type]


def test_without_ks_metrics_look_at_the_whole_ranking() -> None:
    assert list(parse_metrics(["recall", "ndcg@3"], "autorag")) == ["recall", "ndcg@3"]


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(MetricError) as caught:
        parse_metrics(["ndgc", "recall", "recal"], "autorag")
    assert caught.value.total == 2


def test_short_text_leaves_out_the_convention_in_force() -> None:
    metric = parse_metric("ndcg.trec(gain=exp)@5")
    assert metric.short("trec") == "ndcg(gain=exp)@5"
    assert metric.short("autorag") == "ndcg.trec(gain=exp)@5"


def test_names_are_split_outside_brackets() -> None:
    assert split_names("P.5,10, iprec_at_recall.0.1,0.2,map,7") == [
        *("P.5", "P.10", "iprec_at_recall.0.1", "iprec_at_recall.0.2", "map", "7")
    ]
    assert split_names("a@1, nrbp(alpha=0.1, beta=0.2) ,b,") == ["a@1", "nrbp(alpha=0.1, beta=0.2)", "b"]


def test_budgets_are_cutoffs_of_their_own_kind() -> None:
    metric = parse_metric("recall@2000tokens")
    assert metric.cutoff == metric.budget == Budget(2000, "tokens")
    result = groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["recall"])
    with pytest.raises(MetricError, match="was not evaluated"):
        metric.values(result.labelled.hits)


def test_k_is_a_number_or_a_list_of_them(snapshot: Snapshot) -> None:
    for written in ("5, 10", "5 and 10"):
        with pytest.raises(MetricError, match="expected a whole number or a list of them") as caught:
            parse_metrics(["recall"], "autorag", written)  # type: ignore[arg-type]
        assert ("write k=[5, 10]" in str(caught.value)) is (written == "5, 10")
    with snapshot.warns(groupgt.GroupgtWarning):
        warn_of_idle_cutoffs(["recall@5", "bpref"], "autorag", [3])
    warn_of_idle_cutoffs(["recall@5", "mrr"], "autorag", [3])
    warn_of_idle_cutoffs(["recall@5", "bpref"], "autorag", [])
