"""Numbers to four digits that eight tools' own code makes: `identify` names what they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from statistics import mean
from typing import Any

import pytest

from groupgt.evaluation.identify import identify
from tests.peers.test_peers import REASON, data, of_ndeval, qrels_of

pytestmark = pytest.mark.peers

Run = dict[str, dict[str, float]]
# The number, and what names it rightly: the metric, and the policy where it matters.
Case = tuple[str, float, tuple[str, ...]]


def trec_eval(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    names = {
        "map": ("map.trec",),
        "ndcg": ("ndcg.trec",),
        "ndcg_cut_10": ("ndcg.trec@10",),
        "P_5": ("precision.trec@5",),
        "recall_10": ("recall.trec@10",),
        "recip_rank": ("mrr.trec",),
        "Rprec": ("r_precision",),
        "bpref": ("bpref",),
        "map_cut_10": ("map.trec@10",),
        "P_20": ("precision.trec@20",),
        "ndcg_cut_5": ("ndcg.trec@5",),
        "set_recall": ("recall.trec",),
        "success_1": ("hit_rate.trec@1", "precision.trec@1", "mrr.trec@1"),
    }
    found = pytrec_eval.RelevanceEvaluator(flat, set(pytrec_eval.supported_measures)).evaluate(run)
    for name, ours in names.items():
        yield f"trec_eval {name}", mean(values[name] for values in found.values()), ours


def ranx(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("ranx", reason=REASON.format("ranx"))
    names = {
        "f1@5": ("f1.trec@5",),
        "ndcg_burges@10": ("ndcg.trec(gain=exp)@10",),
        "map@100": ("map.trec",),
        "rbp.95": ("rbp(p=0.95) times grades",),
        "precision@3": ("precision.trec@3",),
        "mrr@10": ("mrr.trec@10",),
    }
    relevant = {qid: own for qid, own in flat.items() if any(grade > 0 for grade in own.values())}
    qrels, own = tool.Qrels(relevant), tool.Run({qid: run[qid] for qid in relevant})
    for name, ours in names.items():
        yield f"ranx {name}", float(tool.evaluate(qrels, own, name)), ours


def ir_measures(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("ir_measures", reason=REASON.format("ir_measures"))
    names = {
        "nDCG(judged_only=True)@10": ("ndcg.trec@10",),
        "AP(rel=2)": ("map.trec",),
        "RR@5": ("mrr.trec@5",),
        "SetF": ("f1.trec",),
        "RBP(p=0.8,rel=1)": ("rbp", "rbp(p=0.8)"),
        "Judged@10": ("judged(negative=True)@10", "judged@10"),
        "IPrec@0.5": ("iprec(recall=0.5)",),
    }
    for name, ours in names.items():
        try:
            found = tool.calc_aggregate([tool.parse_measure(name)], flat, run)
        except (ValueError, RuntimeError):
            continue
        yield f"ir_measures {name}", float(next(iter(found.values()))), ours


def evret(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("evret", reason=REASON.format("evret"))
    relevant = {qid: {name for name, grade in own.items() if grade > 0} for qid, own in flat.items()}
    pairs = [(list(run[qid]), own) for qid, own in relevant.items() if own]
    binary = "ndcg@10 with all grades 1"
    for kind, ours in (("NDCG", (binary,)), ("Recall", ("recall.trec@10",)), ("HitRate", ("hit_rate.trec@10",))):
        metric = getattr(tool, kind)(k=10)
        yield f"Evret {kind}@10", mean(metric.score_query(found, own) for found, own in pairs), ours


def llama_index(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("llama_index.core.evaluation.retrieval.metrics", reason=REASON.format("llama_index"))
    for kind, ours in (
        ("MRR", ("mrr.trec",)),
        ("Recall", ("recall.trec",)),
        ("Precision", ("precision.trec", "precision.autorag")),
        ("AveragePrecision", ("map.trec",)),
    ):
        values = []
        for qid, own in flat.items():
            expected = [name for name, grade in own.items() if grade > 0]
            if expected:
                values.append(getattr(tool, kind)().compute(expected_ids=expected, retrieved_ids=list(run[qid])).score)
        yield f"LlamaIndex {kind}", mean(values), ours


def beir(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("beir.retrieval.custom_metrics", reason=REASON.format("beir"), exc_type=ImportError)
    relevant = {qid: own for qid, own in flat.items() if any(grade > 0 for grade in own.values())}
    own = {qid: run[qid] for qid in relevant}
    yield (
        "BEIR R_cap@10",
        tool.recall_cap(relevant, own, [10])["R_cap@10"],
        (
            "recall@10 divided by min(k, relevant)",
            "recall.trec@10",
        ),
    )
    yield "BEIR MRR@10", tool.mrr(relevant, own, [10])["MRR@10"], ("mrr.trec@10",)
    yield "BEIR top_k_accuracy@5", tool.top_k_accuracy(relevant, own, [5])["Accuracy@5"], ("hit_rate.trec@5",)


def scikit_learn(flat: dict[str, dict[str, int]], run: Run) -> Iterator[Case]:
    """As many call it: with the documents that were retrieved alone."""
    tool = pytest.importorskip("sklearn.metrics", reason=REASON.format("scikit-learn"))
    ndcg: list[float] = []
    average: list[float] = []
    for qid, own in flat.items():
        if any(grade > 0 for grade in own.values()):
            scores, found = list(run[qid].values()), [max(own.get(name, 0), 0) for name in run[qid]]
            ndcg.append(tool.ndcg_score([found], [scores], k=10) if any(found) else 0.0)
            average.append(tool.average_precision_score(list(map(bool, found)), scores) if any(found) else 0.0)
    yield "scikit-learn average_precision_score", mean(average), ("AP divided by the number of relevant results",)
    yield "scikit-learn ndcg_score", mean(ndcg), ("ndcg@10 with an ideal of all retrieved documents",)


def ndeval(truth: dict[str, Any], run: Run) -> Iterator[Case]:
    tool = pytest.importorskip("pyndeval", reason=REASON.format("pyndeval"))
    qrels, scored = of_ndeval(tool, truth, run)
    names = {
        "alpha-nDCG@10": "alpha_ndcg@10",
        "ERR-IA@10": "err_ia@10",
        "strec@5": "recall.coverage@5",
        "NRBP": "nrbp",
        "P-IA@5": "p_ia@5",
    }
    found = tool.ndeval(qrels, scored, measures=list(names))
    for name, ours in names.items():
        yield f"ndeval {name}", mean(values[name] for values in found.values()), (ours,)


TOOLS = (trec_eval, ranx, ir_measures, evret, llama_index, beir, scikit_learn)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_forty_numbers_of_eight_tools() -> None:
    truth, run = data(21, graded=True)
    rng = random.Random(3)
    for own in run.values():
        for name in list(own):
            if rng.random() < 0.2:
                own[f"unjudged-{name}"] = own.pop(name)
    run = {qid: dict(sorted(own.items(), key=lambda item: -item[1])) for qid, own in run.items()}
    flat = qrels_of(truth)
    cases = [(flat, run, case) for tool in TOOLS for case in tool(flat, run)]
    groups, results = data(22, shared=True)
    cases += [(groups, results, case) for case in ndeval(groups, results)]
    assert len(cases) >= 40
    right, alone = [], []
    for given, own, (what, value, names) in cases:
        # BEIR rounds to five digits by itself.
        found = identify(given, own, f"{value:.{5 if what.startswith('BEIR') else 4}f}")
        first = [text for match in found.matches[:3] for text in (match.metric, *match.also)]
        if any(text in names or text.partition(" with ")[0] in names for text in first):
            right.append(what)
        elif len(found.matches) == 1:
            alone.append((what, found.matches[0]))
    missed = [what for _, _, (what, _, _) in cases if what not in right]
    assert len(right) >= 0.85 * len(cases), missed
    assert alone == []
