"""Runs of the usual size, from TREC files to means, against the whole script that people write for each."""

from __future__ import annotations

import json
import sys

import data
import report
from processes import __file__ as processes
from report import Pair
from whole import run

# It compares scores in single precision, so that a few more are equal.
TOLERANCE = 1e-6
# What pytrec_eval calls them.
METRICS = {"ndcg": "ndcg", "map": "map", "mrr": "recip_rank", "recall": "recall_1000"}


def measure(rounds: int) -> bool:
    """Prints the ratios; says whether all values agree."""
    report.section(
        "TREC files of the usual size → means, whole processes",
        f"{', '.join(METRICS)}; peers: a script that reads the files with the tool's own functions, and its evaluator",
    )
    plain, submitted = (data.runs(50, 1_000, 11, judged=460, style=style) for style in ("plain", "submitted"))
    one = plain[0], plain[1][:1]
    large = data.runs(2_000, 1_000, 1, judged=20, style="plain")
    deep = data.runs(250, 1_000, 1, judged=1_500, style="plain")
    cases = {
        "11 runs × 50 × 1,000": ("pytrec_eval", plain),
        "the same, as participants submit them": ("pytrec_eval", submitted),
        "1 run × 50 × 1,000": ("pytrec_eval", one),
        "1 run × 2,000 × 1,000": ("pytrec_eval", large),
        "1 run × 250 × 1,000, 1,500 judged each": ("ir_measures_run", deep),
    }
    found, agreed = [], True
    for title, (tool, (qrels, files)) in cases.items():
        theirs = [sys.executable, "-W", "ignore", processes, tool, *map(str, (qrels, *files))]
        asked = ["-m", ",".join(METRICS), "--convention", "trec", "--format", "json"]
        ours = [sys.executable, "-m", "groupgt", "evaluate", *map(str, (qrels, *files)), *asked]
        warm = run(theirs), run(ours)
        if any(each.returncode for each in warm):
            print(f"{title}: failed: {' '.join(each.complaint for each in warm)}")
            agreed = False
            continue
        agreed &= _agree(title, *(each.stdout for each in warm))
        pair = Pair(f"{title} ({tool.removesuffix('_run')})")
        for _ in range(rounds):
            pair.other.append(run(theirs).seconds)
            pair.ours.append(run(ours).seconds)
        found.append(pair)
    report.pairs(found, "peer", inverse=True)
    return agreed


def _agree(title: str, theirs: str, ours: str) -> bool:
    measured = json.loads(ours)
    rows = measured.get("runs", [measured])
    worst = max(
        abs(row["metrics"][name]["mean"] - means[theirs_name])
        for row, means in zip(rows, json.loads(theirs), strict=True)
        for name, theirs_name in METRICS.items()
    )
    if worst > TOLERANCE:
        print(f"{title}: the means DIFFER by up to {worst:.1e}")
    return worst <= TOLERANCE
