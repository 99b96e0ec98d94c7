"""What it costs to start: `import groupgt`, and its command line on a small file."""

from __future__ import annotations

import sys

import data
import report
from report import Pair
from whole import run

TIMES = 5


def measure(rounds: int) -> None:
    files = data.files(50, 10)
    evaluate = ["-m", "groupgt", "evaluate", str(files.truth), str(files.ordered), "-m", "recall,ndcg", "-k", "1,5,10"]
    compared = {
        "import groupgt; import numpy": (["-c", "import numpy"], ["-c", "import groupgt"]),
        "groupgt.evaluate at hand; import numpy": (["-c", "import numpy"], ["-c", "import groupgt; groupgt.evaluate"]),
        "groupgt evaluate, 50 queries × 10; import numpy, click, tabulate": (
            ["-c", "import numpy, click, tabulate"],
            evaluate,
        ),
        "groupgt --help; an empty process": (["-c", "pass"], ["-m", "groupgt", "--help"]),
    }
    report.section("Starting, whole processes", "groupgt; and what it is compared with")
    found = []
    for title, commands in compared.items():
        other, ours = ([sys.executable, *command] for command in commands)
        # Once before the clock: bytecode is written, files come into memory.
        failed = [each for each in (run(other), run(ours)) if each.returncode]
        if failed:
            print(f"{title}: failed: {failed[0].complaint}")
            continue
        pair = Pair(title)
        for _ in range(rounds * TIMES):
            pair.other.append(run(other).seconds)
            pair.ours.append(run(ours).seconds)
        found.append(pair)
    report.pairs(found, "other", inverse=True)
