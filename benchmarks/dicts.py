"""Ground truth and results as the dicts of pytrec_eval, each round in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import data
import peers
import report
from lists import TOLERANCE, timed
from peers import Means, Qrels, Scores
from report import Pair

DEPTH = 100
ROUNDS = {"dicts": "the same dicts for both", "lists": "dicts for pytrec_eval, lists for groupgt"}


def measure(rounds: int, count: int) -> bool:
    """Prints the times; returns whether all means agree."""
    report.section(
        f"The dicts of pytrec_eval → means: {count:,} queries × {DEPTH} results",
        "each round in a new process, in which both tools have evaluated one query before",
    )
    pairs = {name: Pair(title) for name, title in ROUNDS.items()}
    agreed = True
    for _ in range(rounds):
        command = [sys.executable, __file__, str(count)]
        told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        agreed &= told["agreed"]
        for name, pair in pairs.items():
            pair.other.append(told["pytrec_eval"])
            pair.ours.append(told[name])
    report.pairs(list(pairs.values()), "pytrec_eval")
    return agreed


def _round(count: int) -> None:
    truth, results = data.lists(count, DEPTH)
    ours = peers.groupgt_measure("trec")
    one = {"q": {"d": 1}}, {"q": {"d": 1.0}}
    _pytrec_eval(*one)
    ours(*one)
    seconds, means = {}, {}
    for name, call in (("pytrec_eval", _pytrec_eval), ("dicts", ours)):
        qrels, scores = peers.flat(data.fresh_truth(truth)), peers.scored(data.fresh_results(results))
        seconds[name], means[name] = timed(partial(call, qrels, scores))
    own = data.fresh_truth(truth), data.fresh_results(results)
    seconds["lists"], means["lists"] = timed(partial(ours, *own))
    agreed = all(
        abs(means[name][metric] - mean) <= TOLERANCE for metric, mean in means["pytrec_eval"].items() for name in ROUNDS
    )
    print(json.dumps({**seconds, "agreed": agreed}))


def _pytrec_eval(qrels: Qrels, scores: Scores) -> Means:
    return peers.qrels_evaluator(qrels, lambda run: run)(scores)


if __name__ == "__main__":
    _round(int(sys.argv[1]))
