"""Other tools as oracles, on random data; each is skipped where it is not installed."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt

pytestmark = pytest.mark.peers
REASON = "{} is in the extra groupgt[peers]"


def data(
    seed: int, *, graded: bool = False, shared: bool = False
) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    """Ground truth and scored results without ties."""
    rng = random.Random(seed)
    truth: dict[str, Any] = {}
    run: dict[str, dict[str, float]] = {}
    for number in range(150):
        qid = f"q{number}"
        pool = [f"d{each:03d}" for each in rng.sample(range(300), 30)]
        groups = []
        for place in range(rng.randint(1, 4)):
            # Disjoint slices of the pool, unless groups may share.
            own = rng.sample(pool, rng.randint(1, 3)) if shared else pool[place * 3 : place * 3 + rng.randint(1, 3)]
            groups.append([{"id": name, "grade": rng.choice((0, 1, 2, 3))} if graded else name for name in own])
        truth[qid] = groups
        ranked = rng.sample(pool, rng.randint(5, 30))
        run[qid] = {name: float(len(ranked) - place) for place, name in enumerate(ranked)}
    return truth, run


def qrels_of(truth: dict[str, Any]) -> dict[str, dict[str, int]]:
    flat: dict[str, dict[str, int]] = {}
    for qid, groups in truth.items():
        flat[qid] = {}
        for cell in (cell for group in groups for cell in group):
            name, grade = (cell["id"], cell["grade"]) if isinstance(cell, dict) else (cell, 1)
            flat[qid][name] = max(grade, flat[qid].get(name, grade))
    return flat


def of_ndeval(pyndeval: Any, truth: dict[str, Any], run: dict[str, dict[str, float]]) -> tuple[list[Any], list[Any]]:
    """Ground truth and results as ndeval takes them: each group is a subtopic."""
    qrels = [
        pyndeval.SubtopicQrel(qid, str(number), name, 1)
        for qid, groups in truth.items()
        for number, group in enumerate(groups, 1)
        for name in group
    ]
    return qrels, [pyndeval.ScoredDoc(qid, name, score) for qid, own in run.items() for name, score in own.items()]


@pytest.mark.parametrize("graded", [False, True])
def test_pytrec_eval(graded: bool) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    truth, run = data(1, graded=graded, shared=True)
    ks = "1,3,5,10,100"
    asked = {f"{name}.{ks}" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    asked |= {"map", "ndcg", "recip_rank", "Rprec", "bpref", "set_P", "set_recall", "set_F"}
    asked |= {"num_ret", "num_rel", "num_rel_ret", "iprec_at_recall"}
    found = pytrec_eval.RelevanceEvaluator(qrels_of(truth), asked).evaluate(run)
    names = sorted(next(iter(found.values())))
    ours = {name: {"map": "map.trec", "ndcg": "ndcg.trec"}.get(name, name) for name in names}
    result = groupgt.evaluate(truth, run, list(ours.values()))
    compared = 0
    for position, qid in enumerate(truth):
        if not result.truth.judgments.defined[position]:
            continue  # trec_eval counts these as 0
        for name, text in ours.items():
            assert result.values[text][position] == pytest.approx(found[qid][name], abs=1e-9), (qid, name)
            compared += 1
    assert compared > 3000


@pytest.mark.parametrize("lines", ["best first", "random", "scattered"])
def test_pytrec_eval_on_files_with_ties(lines: str, tmp_path: Path) -> None:
    """Nine scores for up to 150 results, ranks that are not in their order, and negative grades."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    rng = random.Random(lines)
    truth: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for qid in map(str, range(60)):
        pool = [f"d{each}" for each in rng.sample(range(2000), rng.randint(20, 150))]
        truth[qid] = {name: rng.choice((-1, 0, 0, 1, 1, 2, 3)) for name in rng.sample(pool, len(pool) // 2)}
        run[qid] = {name: rng.randint(0, 8) / 4 for name in rng.sample(pool, rng.randint(len(pool) // 2, len(pool)))}
        if lines == "best first":
            run[qid] = dict(sorted(run[qid].items(), key=lambda result: -result[1]))
    rows = [f"{qid} Q0 {name} {rank} {own[name]} t\n" for qid, own in run.items() for rank, name in enumerate(own)]
    if lines == "scattered":
        rng.shuffle(rows)
    qrels, path = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("".join(f"{qid} 0 {name} {grade}\n" for qid, own in truth.items() for name, grade in own.items()))
    path.write_text("".join(rows))
    asked = {f"{name}.1,3,5,10,20,100" for name in ("P", "recall", "ndcg_cut", "map_cut", "success")}
    asked |= {"map", "ndcg", "recip_rank", "Rprec", "bpref", "set_P", "set_recall", "set_F", "iprec_at_recall"}
    for policy, judged_only in ((None, False), ("unjudged=drop", True)):
        found = pytrec_eval.RelevanceEvaluator(truth, asked, judged_docs_only_flag=judged_only).evaluate(run)
        ours = {name: {"map": "map.trec", "ndcg": "ndcg.trec"}.get(name, name) for name in found["0"]}
        result = groupgt.evaluate(qrels, path, list(ours.values()), policy=policy)
        for name, text in ours.items():
            expected = [found[qid][name] for qid in result.truth.qids]
            assert result.values[text].tolist() == pytest.approx(expected, abs=1e-9), name


def test_ties_of_ndeval_go_by_ascending_id() -> None:
    """And groupgt's by descending id, as trec_eval's do."""
    pyndeval = pytest.importorskip("pyndeval", reason=REASON.format("pyndeval"))
    for relevant, theirs, ours in (("a", 1.0, 0.0), ("b", 0.0, 1.0)):
        scored = [pyndeval.ScoredDoc("q", name, 1.0) for name in "ba"]
        found = pyndeval.ndeval([pyndeval.SubtopicQrel("q", "1", relevant, 1)], scored, measures=["strec@1"])
        assert found["q"]["strec@1"] == theirs
        result = groupgt.evaluate({"q": [[relevant]]}, {"q": {"a": 1.0, "b": 1.0}}, ["recall.coverage@1"])
        assert result["recall.coverage@1"] == ours


def test_pyndeval() -> None:
    pyndeval = pytest.importorskip("pyndeval", reason=REASON.format("pyndeval"))
    truth, run = data(2, shared=True)
    qrels, scored = of_ndeval(pyndeval, truth, run)
    names = {"ERR-IA": "err_ia", "nERR-IA": "nerr_ia", "alpha-DCG": "alpha_dcg", "alpha-nDCG": "alpha_ndcg"}
    cut = {"P-IA": "p_ia", "strec": "recall.coverage"}
    for alpha in (0.0, 0.5, 1.0):
        # At k = 1 ndeval leaves ERR-IA and alpha-DCG without their normalizer.
        ours = {f"{name}@{k}": f"{our}(alpha={alpha})@{k}" for name, our in names.items() for k in (3, 5, 10, 20)}
        ours |= {f"{name}@{k}": f"{our}@{k}" for name, our in cut.items() for k in (1, 3, 5, 10, 20)}
        ours |= {"NRBP": f"nrbp(alpha={alpha})", "nNRBP": f"nnrbp(alpha={alpha})", "MAP-IA": "map_ia"}
        found = pyndeval.ndeval(qrels, scored, measures=list(ours), alpha=alpha)
        result = groupgt.evaluate(truth, run, list(ours.values()))
        for position, qid in enumerate(truth):
            for name, text in ours.items():
                assert result.values[text][position] == pytest.approx(found[qid][name], abs=1e-9), (qid, name)


@pytest.mark.filterwarnings("default")
def test_ranx() -> None:
    ranx = pytest.importorskip("ranx", reason=REASON.format("ranx"))
    truth, run = data(3, graded=True)
    flat = {qid: own for qid, own in qrels_of(truth).items() if any(grade > 0 for grade in own.values())}
    truth = {qid: truth[qid] for qid in flat}
    ours = {
        "precision@5": "precision.trec@5",
        "recall@5": "recall.trec@5",
        "f1@5": "f1.trec@5",
        "hit_rate@5": "hit_rate.trec@5",
        "hits@5": "hits@5",
        "r-precision": "r_precision",
        "mrr": "mrr.trec",
        "map@10": "map.trec@10",
        "ndcg@10": "ndcg.trec@10",
        "ndcg_burges@10": "ndcg.trec(gain=exp)@10",
    }
    means = ranx.evaluate(ranx.Qrels(flat), ranx.Run({qid: run[qid] for qid in flat}), list(ours))
    result = groupgt.evaluate(truth, {qid: run[qid] for qid in flat}, list(ours.values()))
    for name, text in ours.items():
        assert result[text] == pytest.approx(means[name], abs=1e-6), name


@pytest.mark.filterwarnings("default")
def test_rbp_of_ranx_is_graded_and_not_divided() -> None:
    ranx = pytest.importorskip("ranx", reason=REASON.format("ranx"))
    truth, run = data(3, graded=True)
    flat = {qid: own for qid, own in qrels_of(truth).items() if any(grade > 0 for grade in own.values())}
    run = {qid: run[qid] for qid in flat}
    highest = max(grade for own in flat.values() for grade in own.values())
    theirs = ranx.evaluate(ranx.Qrels(flat), ranx.Run(run), "rbp.95")
    ours = groupgt.evaluate(flat, run, ["rbp(graded=True, p=0.95)"])["rbp(graded=True, p=0.95)"]
    assert ours * highest == pytest.approx(theirs, abs=1e-9)


def test_rbp_of_evret_divides_by_the_highest_grade_of_each_query() -> None:
    evret = pytest.importorskip("evret", reason=REASON.format("evret"))
    truth, run = data(3, graded=True)
    for qid, own in qrels_of(truth).items():
        ours = groupgt.evaluate({qid: own}, {qid: run[qid]}, ["rbp(graded=True)@5"])["rbp(graded=True)@5"]
        theirs = evret.RBP(k=5).score_query(list(run[qid]), own)
        assert ours == pytest.approx(theirs, abs=1e-9) if max(own.values()) > 0 else np.isnan(ours)


@pytest.mark.filterwarnings("default")
def test_ir_measures() -> None:
    ir_measures = pytest.importorskip("ir_measures", reason=REASON.format("ir_measures"))
    truth, run = data(4, graded=True)
    flat = qrels_of(truth)
    ours = {
        "P@5": "P_5",
        "R@5": "recall_5",
        "RR": "recip_rank",
        "AP": "map.trec",
        "nDCG@10": "ndcg_cut_10",
        "Judged@10": "judged(negative=True)@10",
        "IPrec@0.1": "iprec@0.1",
        "IPrec@0.7": "IPrec@0.7",
        "SetP": "SetP",
        "SetR": "SetR",
        "SetF": "SetF",
        "NumRet": "NumRet",
        "NumRel": "NumRel",
        "NumRelRet": "num_rel_ret",
        "infAP": "infAP",
        "infAP(rel=2)": "infAP(rel=2)",
        "AP(rel=2)": "map.trec(level=2)",
        "P(rel=2)@5": "P.trec(rel=2)@5",
        "Compat": "Compat",
        "Compat(p=0.8)": "Compat(p=0.8)",
        "Compat(normalize=False)": "Compat(normalize=False)",
    }
    measures = {name: ir_measures.parse_measure(name) for name in ours}
    names = {str(measure): name for name, measure in measures.items()}
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for each in ir_measures.iter_calc(list(measures.values()), flat, run):
        found[names[str(each.measure)]][each.query_id] = each.value
    result = groupgt.evaluate(truth, run, list(ours.values()))
    for name, text in ours.items():
        for position, qid in enumerate(truth):
            if not np.isnan(result.values[text][position]):
                assert result.values[text][position] == pytest.approx(found[name][qid], abs=1e-9), (name, qid)


@pytest.mark.parametrize("level", [1, 2])
def test_inferred_average_precision_of_sampled_qrels(level: int) -> None:
    """Two of three judgments of the pool are left out, as in the million query track."""
    ir_measures = pytest.importorskip("ir_measures", reason=REASON.format("ir_measures"))
    rng = random.Random(level)
    truth, run = data(5, graded=True)
    sampled = {
        qid: {name: grade if rng.random() < 1 / 3 else -1 for name, grade in judged.items()}
        for qid, judged in qrels_of(truth).items()
    }
    measure = ir_measures.parse_measure(f"infAP(rel={level})")
    found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], sampled, run)}
    result = groupgt.evaluate(sampled, run, [f"infap(level={level})"])
    values = dict(zip(truth, result.values[f"infap(level={level})"].tolist(), strict=True))
    compared = [qid for qid in truth if not np.isnan(values[qid])]
    assert len(compared) > 60
    for qid in compared:
        assert values[qid] == pytest.approx(found[qid], abs=1e-12), qid


@pytest.mark.parametrize("negative", [False, True], ids=["judged", "negative grades and ties"])
def test_condensed_lists(negative: bool) -> None:
    """unjudged=drop is trec_eval's -J and ir_measures' judged_only: negative grades are no judgments."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason=REASON.format("pytrec_eval"))
    ir_measures = pytest.importorskip("ir_measures", reason=REASON.format("ir_measures"))
    truth, run = data(6, graded=True)
    flat = qrels_of(truth)
    if negative:
        rng = random.Random(6)
        flat = {qid: {name: rng.choice((-1, grade, grade)) for name, grade in own.items()} for qid, own in flat.items()}
        run = {qid: {name: score // 3 for name, score in own.items()} for qid, own in run.items()}
        truth = flat
    names = {"P_5", "recall_5", "ndcg_cut_10", "map", "recip_rank", "Rprec", "set_P", "num_ret", "iprec_at_recall_0.10"}
    asked = {"P.5", "recall.5", "ndcg_cut.10", "map", "recip_rank", "Rprec", "set_P", "num_ret", "iprec_at_recall"}
    condensed = pytrec_eval.RelevanceEvaluator(flat, asked, judged_docs_only_flag=True).evaluate(run)
    ours = {name: {"map": "map.trec"}.get(name, name) for name in sorted(names)}
    result = groupgt.evaluate(truth, run, list(ours.values()), policy="unjudged=drop")
    spelled = {f"{name}(judged_only=True){at}": name + at for name, at in (("nDCG", "@10"), ("P", "@5"), ("RR", ""))}
    with_measures = groupgt.evaluate(truth, run, list(spelled), convention="trec")
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for text in spelled:
        for each in ir_measures.iter_calc([ir_measures.parse_measure(text)], flat, run):
            found[text][each.query_id] = each.value
    compared = 0
    for position, qid in enumerate(truth):
        if not result.truth.judgments.defined[position]:
            continue
        for name, text in ours.items():
            assert result.values[text][position] == pytest.approx(condensed[qid][name], abs=1e-9), (qid, name)
        for text in spelled:
            assert with_measures.values[text][position] == pytest.approx(found[text][qid], abs=1e-9), (qid, text)
        compared += len(ours) + len(spelled)
    assert compared > 1000


def test_evret() -> None:
    evret = pytest.importorskip("evret", reason=REASON.format("evret"))
    truth, run = data(5)
    ranked = {qid: list(own) for qid, own in run.items()}
    relevant = {qid: list(own) for qid, own in qrels_of(truth).items()}
    ours = {
        "HitRate": "hit_rate.trec@5",
        "Recall": "recall.trec@5",
        "Precision": "precision.trec@5",
        "MRR": "mrr.trec@5",
        "NDCG": "ndcg.trec@5",
        "RBP": "rbp@5",
    }
    result = groupgt.evaluate(truth, ranked, list(ours.values()))
    for name, text in ours.items():
        metric = getattr(evret, name, None)
        if metric is None:
            pytest.skip(f"this version of evret has no {name}")
        for position, qid in enumerate(truth):
            assert metric(k=5).score_query(ranked[qid], relevant[qid]) == pytest.approx(
                result.values[text][position], abs=1e-9
            )
