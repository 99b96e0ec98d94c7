"""From nested lists and lists of ids to means, in one process: peer, groupgt, peer, groupgt, …"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import data
import peers
import report
from data import Results, Truth
from peers import CUTOFFS, METRICS, Means, Peer
from report import Pair

import groupgt

DEPTH = 100
TOLERANCE = 1e-6
SLOW_ROUNDS = 5
T = TypeVar("T")


def measure(rounds: int, size: int | None) -> bool:
    """Prints everything about lists; says whether all values agree."""
    agreed = True
    for count in [size] if size else [10_000, 1_000]:
        truth, results = data.lists(count, DEPTH)
        title = f"{count:,} queries × {DEPTH} results"
        report.section(f"Lists → means: {title}", f"{', '.join(METRICS)} at k = {', '.join(map(str, CUTOFFS))}")
        agreed &= _against_peers(truth, results, rounds)
        report.section(f"Ground truth reused for many runs: {title}")
        _reused(truth, results, rounds)
        report.section(
            f"Results with scores → means: {title}",
            "pytrec_eval takes dicts as they are; pairs are made into dicts for it, within the time",
        )
        _with_scores(truth, results, rounds)
    count = size or 10_000
    report.section(f"More values: {count:,} queries × {DEPTH} results", "what is added to the time of those twelve")
    _one_more(*data.lists(count, DEPTH), rounds * 5)
    report.section("ranx's first call", "on 20 queries, in a process of its own with nothing compiled before")
    _first_call()
    return agreed


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Garbage of whoever ran before is collected before the clock runs; during the call the tool's setting holds."""
    gc.collect()
    start = perf_counter()
    value = call()
    return perf_counter() - start, value


def _once(measure: peers.Measure, truth: Truth, results: Results) -> tuple[float, Means]:
    own_truth, own_results = data.fresh_truth(truth), data.fresh_results(results)
    return timed(lambda: measure(own_truth, own_results))


def _against_peers(truth: Truth, results: Results, rounds: int) -> bool:
    found: list[Pair] = []
    checks: list[list[object]] = []
    agreed = True
    for peer in peers.PEERS:
        theirs, ours = peers.loaded(peer), peers.groupgt_measure(peer.convention)
        if theirs is None:
            checks.append([peer.name, "not installed", "", ""])
            continue
        expected, values = theirs(truth, results), ours(truth, results)
        row, same = _check(peer, expected, values)
        checks.append(row)
        agreed &= same
        pair = Pair(peer.name, note=f"{len(expected)} values against {len(values)}")
        for _ in range(min(rounds, SLOW_ROUNDS) if peer.slow else rounds):
            pair.other.append(_once(theirs, truth, results)[0])
            pair.ours.append(_once(ours, truth, results)[0])
        found.append(pair)
    report.pairs(found, "peer")
    print()
    report.table(["means", "agree within 1e-6", "largest difference", "not compared"], checks)
    return agreed


def _check(peer: Peer, expected: Means, values: Means) -> tuple[list[object], bool]:
    worst = max(abs(values[name] - mean) for name, mean in expected.items())
    same = worst <= TOLERANCE
    told = f"{len(expected)} of {len(expected)}" if same else "DIFFER"
    return [f"{peer.name} = groupgt's {peer.convention}", told, f"{worst:.1e}", peer.apart], same


def _reused(truth: Truth, results: Results, rounds: int) -> None:
    pair = Pair("pytrec_eval, its evaluator reused")
    theirs = peers.pytrec_evaluator(data.fresh_truth(truth))
    ground_truth = groupgt.GroundTruth.of(data.fresh_truth(truth))

    def ours(run: Results) -> Means:
        return groupgt.evaluate(ground_truth, run, METRICS, k=CUTOFFS, convention="trec").means

    ours(results)
    for _ in range(rounds):
        for measured, into in ((theirs, pair.other), (ours, pair.ours)):
            run = data.fresh_results(results)
            into.append(timed(partial(measured, run))[0])
    report.pairs([pair], "peer")


def _with_scores(truth: Truth, results: Results, rounds: int) -> None:
    ours = peers.groupgt_measure("trec")
    shapes: dict[str, tuple[Callable[[peers.Scores], Any], Callable[[Any], peers.Scores]]] = {
        "{id: score}": (lambda run: run, lambda run: run),
        "(id, score) pairs": (
            lambda run: {qid: list(own.items()) for qid, own in run.items()},
            lambda run: {qid: dict(pairs) for qid, pairs in run.items()},
        ),
    }
    found = []
    for title, (shaped, scored) in shapes.items():
        pair = Pair(f"pytrec_eval, {title}")
        for _ in range(rounds):
            for measure, into in ((_pytrec_eval(scored), pair.other), (ours, pair.ours)):
                run = shaped(peers.scored(data.fresh_results(results)))
                into.append(timed(partial(measure, data.fresh_truth(truth), run))[0])
        found.append(pair)
    report.pairs(found, "peer")


def _pytrec_eval(scored: Callable[[Any], peers.Scores]) -> Callable[[Truth, Any], Means]:
    return lambda truth, run: peers.pytrec_evaluator(truth, scored)(run)


def _one_more(truth: Truth, results: Results, rounds: int) -> None:
    twelve = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]
    more = {
        "a metric of the same kind, hit_rate@10": ["hit_rate@10"],
        "a cutoff of one metric, recall@20": ["recall@20"],
        "a metric that shares nothing, alpha_ndcg@10": ["alpha_ndcg@10"],
        "another convention, ndcg.coverage@10": ["ndcg.coverage@10"],
        "a cutoff of all six, @20 (six values)": [f"{name}@20" for name in METRICS],
    }
    rows = []
    for title, added in more.items():
        plain: list[float] = []
        longer: list[float] = []
        for number in range(rounds):
            turns = [(twelve, plain), ([*twelve, *added], longer)]
            # Whoever goes second finds warmer memory: take turns.
            for asked, into in turns if number % 2 else reversed(turns):
                own_truth, own_results = data.fresh_truth(truth), data.fresh_results(results)
                call = _evaluation(own_truth, own_results, asked)
                into.append(timed(call)[0])
        ratios = [more / less for less, more in zip(plain, longer, strict=True)]
        rows.append(
            [title, *(f"{100 * share - 100:+.1f}%" for share in (min(longer) / min(plain), statistics.median(ratios)))]
        )
    report.table(["12 values and …", "of the least times", "median of the rounds"], rows)


def _evaluation(truth: Truth, results: Results, metrics: list[str]) -> Callable[[], Means]:
    return lambda: groupgt.evaluate(truth, results, metrics).means


def _first_call() -> None:
    code = (
        "import data, peers, time\n"
        "truth, results = data.lists(20, 100)\n"
        "start = time.perf_counter(); measure = peers.load_ranx(); imported = time.perf_counter()\n"
        "measure(truth, results); first = time.perf_counter()\n"
        "measure(truth, results); print(imported - start, first - imported, time.perf_counter() - first)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "NUMBA_CACHE_DIR": folder}
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(
            command, env=environ, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
        )
    if done.returncode:
        print("ranx is not installed, or failed:", done.stderr.strip().splitlines()[-1:])
        return
    times = [f"{float(each):.2f}" for each in done.stdout.split()]
    report.table(["import, s", "first call, s", "second call, s"], [times])
