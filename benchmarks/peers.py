"""The peers, each as a function from lists to means: what it needs is made from the lists within the function."""

from __future__ import annotations

import functools
import importlib
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import environment
from data import Results, Truth

METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")
CUTOFFS = (10, 100)

Means = dict[str, float]
Measure = Callable[[Truth, Results], Means]
Qrels = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Peer:
    """A tool: `load` imports it; `convention` is groupgt's name for its reading of the metrics.

    `apart` says which of the twelve values it does not give, or defines otherwise.
    """

    name: str
    convention: str
    load: Callable[[], Measure]
    apart: str = ""
    slow: bool = False


def flat(truth: Truth) -> Qrels:
    return {qid: dict.fromkeys(chain.from_iterable(groups), 1) for qid, groups in truth.items()}


def scored(results: Results) -> Scores:
    """Rankings as tools that know only scores want them."""
    return {qid: dict(zip(names, map(float, range(len(names), 0, -1)), strict=True)) for qid, names in results.items()}


PYTREC = {"P": "precision", "recall": "recall", "map_cut": "map", "ndcg_cut": "ndcg"}


def pytrec_evaluator(truth: Truth, scored: Callable[[Any], Scores] = scored) -> Callable[[Any], Means]:
    """An evaluator to be reused: what it returns makes scores of a run and measures it."""
    return qrels_evaluator(flat(truth), scored)


def qrels_evaluator(qrels: Qrels, scored: Callable[[Any], Scores] = scored) -> Callable[[Any], Means]:
    """The same from flat ground truth."""
    import pytrec_eval

    cutoffs = ",".join(map(str, CUTOFFS))
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {*(f"{name}.{cutoffs}" for name in PYTREC), "recip_rank"})
    # recip_rank has no cutoff: it is the mrr of a ranking that is no longer than the deepest one.
    names = {f"{theirs}_{k}": f"{ours}@{k}" for theirs, ours in PYTREC.items() for k in CUTOFFS}
    names["recip_rank"] = f"mrr@{max(CUTOFFS)}"

    def measure(results: Any) -> Means:
        values = list(evaluator.evaluate(scored(results)).values())
        return {
            ours: pytrec_eval.compute_aggregated_measure(theirs, [value[theirs] for value in values])
            for theirs, ours in names.items()
        }

    return measure


def load_pytrec_eval() -> Measure:
    import pytrec_eval  # noqa: F401  # imported before the clock runs

    return lambda truth, results: pytrec_evaluator(truth)(results)


def load_evret() -> Measure:
    from evret import MRR, NDCG, AveragePrecision, Precision, Recall

    kinds = {"precision": Precision, "recall": Recall, "mrr": MRR, "map": AveragePrecision, "ndcg": NDCG}

    def measure(truth: Truth, results: Results) -> Means:
        expected = [set(chain.from_iterable(groups)) for groups in truth.values()]
        retrieved = [results[qid] for qid in truth]
        return {f"{name}@{k}": kind(k=k).score(retrieved, expected) for name, kind in kinds.items() for k in CUTOFFS}

    return measure


def load_ranx() -> Measure:
    from numba.core.errors import NumbaWarning
    from ranx import Qrels as RanxQrels
    from ranx import Run as RanxRun
    from ranx import evaluate

    warnings.simplefilter("ignore", NumbaWarning)
    names = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]

    def measure(truth: Truth, results: Results) -> Means:
        return {
            name: float(mean)
            for name, mean in evaluate(RanxQrels(flat(truth)), RanxRun(scored(results)), names).items()
        }

    return measure


def ir_measures_names() -> dict[Any, str]:
    """Its measures, each with groupgt's name."""
    from ir_measures import AP, RR, P, R, nDCG

    kinds = {"precision": P, "recall": R, "mrr": RR, "map": AP, "ndcg": nDCG}
    return {kind @ k: f"{name}@{k}" for name, kind in kinds.items() for k in CUTOFFS}


def load_ir_measures() -> Measure:
    import ir_measures

    names = ir_measures_names()

    def measure(truth: Truth, results: Results) -> Means:
        means = ir_measures.calc_aggregate(list(names), flat(truth), scored(results))
        return {ours: means[theirs] for theirs, ours in names.items()}

    return measure


def load_autorag(*, checked: bool = True) -> Measure:
    """Its six functions as they stand in its wheel, for each query and cutoff; without `checked`, the formulas alone.

    Its packages import everything they have when they are imported, so empty ones stand in for them, and a stub for the
    one function that the metrics take from `autorag.utils.util`.
    """
    if not environment.autorag_version():
        raise ImportError("autorag")
    for name in ("", ".evaluation", ".evaluation.metric", ".schema", ".utils"):
        package = types.ModuleType(f"autorag{name}")
        package.__path__ = [str(environment.AUTORAG.joinpath("autorag", *name.split(".")[1:]))]
        sys.modules[f"autorag{name}"] = package
    util = types.ModuleType("autorag.utils.util")
    util.__dict__["convert_inputs_to_list"] = lambda function: function
    sys.modules["autorag.utils.util"] = util
    metrics = importlib.import_module("autorag.evaluation.metric.retrieval")
    metric_input = importlib.import_module("autorag.schema.metricinput").MetricInput
    functions = {name: getattr(metrics, f"retrieval_{name}") for name in METRICS}

    def measure(truth: Truth, results: Results) -> Means:
        means: Means = {}
        for k in CUTOFFS:
            inputs = [
                metric_input(retrieval_gt=groups, retrieved_ids=results[qid][:k]) for qid, groups in truth.items()
            ]
            for name, function in functions.items():
                values = function(metric_inputs=inputs) if checked else list(map(function.__wrapped__, inputs))
                means[f"{name}@{k}"] = sum(values) / len(values)
        return means

    return measure


def groupgt_measure(convention: str) -> Measure:
    import groupgt

    return lambda truth, results: groupgt.evaluate(truth, results, METRICS, k=CUTOFFS, convention=convention).means


@functools.cache
def loaded(peer: Peer) -> Measure | None:
    """The peer's function, or None where it is not installed."""
    try:
        return peer.load()
    except ImportError:
        return None


PEERS = (
    Peer("pytrec_eval", "trec", load_pytrec_eval, apart="no f1@k; recip_rank knows no cutoff (compared with mrr@100)"),
    Peer("evret", "trec", load_evret, apart="no f1@k"),
    Peer("ranx, warm", "trec", load_ranx, slow=True),
    Peer("ir_measures", "trec", load_ir_measures, apart="no f1@k", slow=True),
    Peer("AutoRAG", "autorag", load_autorag, slow=True),
    Peer("AutoRAG, formulas alone", "autorag", functools.partial(load_autorag, checked=False), slow=True),
)
