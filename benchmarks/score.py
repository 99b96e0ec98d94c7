"""One query: `groupgt.score` beside the calls of other tools, in microseconds."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from statistics import median
from time import perf_counter

import peers
import report
from report import Pair

TIMES = 2_000
GROUPS = [["doc_0000001", "doc_0000002"], ["doc_0000003"]]
IDS = [
    "doc_0000009",
    "doc_0000002",
    "doc_0000008",
    "doc_0000007",
    "doc_0000003",
    *(f"doc_{n:07}" for n in range(20, 25)),
]


def measure(rounds: int) -> None:
    import groupgt

    report.section("One query, 10 results, recall, ndcg@10 and one more", "minimum / median of microseconds a call")
    rows = []
    for title, load in {"AutoRAG": autorag, "ir_measures": ir_measures}.items():
        try:
            other = load()
        except ImportError:
            print(f"{title} is not there")
            continue
        pair = Pair(title)
        for _ in range(rounds):
            pair.other.append(1e6 * timed(other))
            pair.ours.append(1e6 * timed(lambda: groupgt.score(GROUPS, IDS)))
        cells = [f"{min(column):.1f} / {median(column):.1f}" for column in (pair.other, pair.ours, pair.ratios())]
        rows.append([title, *cells])
    report.table(["tool", "its call", "groupgt.score", "its ÷ groupgt's"], rows)


def timed(call: Callable[[], object]) -> float:
    """The seconds of one call, of many in a row."""
    start = perf_counter()
    for _ in range(TIMES):
        call()
    return (perf_counter() - start) / TIMES


def autorag() -> Callable[[], object]:
    """Three of its functions, each with the checks of its inputs."""
    peers.load_autorag()
    metrics = importlib.import_module("autorag.evaluation.metric.retrieval")
    metric_input = importlib.import_module("autorag.schema.metricinput").MetricInput
    functions = [metrics.retrieval_recall, metrics.retrieval_ndcg, metrics.retrieval_mrr]

    def call() -> list[object]:
        inputs = [metric_input(retrieval_gt=GROUPS, retrieved_ids=IDS)]
        return [function(metric_inputs=inputs) for function in functions]

    return call


def ir_measures() -> Callable[[], object]:
    """Its one call from qrels and a run to values, as every query has its own ground truth."""
    import ir_measures
    from ir_measures import RR, R, nDCG

    qrels = {"q": {name: 1 for group in GROUPS for name in group}}
    run = {"q": {name: 1 / rank for rank, name in enumerate(IDS, 1)}}
    return lambda: ir_measures.calc_aggregate([R @ 10, nDCG @ 10, RR], qrels, run)
