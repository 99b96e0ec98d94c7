"""From a TREC file to means, whole processes: starting, importing, reading, measuring, printing."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import data
import environment
import report
from peers import CUTOFFS, METRICS, PYTREC, Means
from processes import __file__ as processes
from report import Pair
from whole import Finished, run

DEPTH = 1_000
TOLERANCE = 1e-6
# trec_eval prints four digits.
ROUNDED = 0.00005 + TOLERANCE
PEER_ROUNDS = 5


def measure(rounds: int, count: int) -> bool:
    """Prints everything about files; says whether all values agree."""
    files = data.files(count, DEPTH)
    size = files.ordered.stat().st_size / 1e6
    report.section(
        f"TREC file → means, whole processes: {count:,} queries × {DEPTH:,} results, {size:,.0f} MB",
        f"{', '.join(METRICS)} at k = {', '.join(map(str, CUTOFFS))}; read = polars reads its three columns, no more",
    )
    ordered = _ours(files.truth, files.ordered)
    warm = run(ordered)
    if warm.returncode:
        print(f"groupgt's command line failed:\n{warm.stderr}")
        return False
    means = _means(warm.stdout)
    _against_reading(files, rounds)
    print()
    return _against_peers(files, ordered, means, min(rounds, PEER_ROUNDS))


def _ours(truth: Path, results: Path) -> list[str]:
    asked = ["-m", ",".join(METRICS), "-k", ",".join(map(str, CUTOFFS)), "--convention", "trec", "--format", "json"]
    return [sys.executable, "-m", "groupgt", "evaluate", str(truth), str(results), *asked]


def _tool(name: str, *paths: Path) -> list[str]:
    return [sys.executable, "-W", "ignore", processes, name, *map(str, paths)]


def _against_reading(files: data.Files, rounds: int) -> None:
    found = []
    for title, path in (("lines in order", files.ordered), ("lines shuffled", files.shuffled)):
        commands = _tool("read", path), _ours(files.truth, path)
        # The file comes into the memory of the operating system before anything is timed.
        run(commands[0])
        pair = Pair(title)
        pairs = [(run(commands[0]), run(commands[1])) for _ in range(rounds)]
        pair.other = [reading.seconds for reading, _ in pairs]
        pair.ours = [measuring.seconds for _, measuring in pairs]
        pair.note = _resources([each for each, _ in pairs], [each for _, each in pairs])
        found.append(pair)
    report.pairs(found, "read", inverse=True)


def _against_peers(files: data.Files, ordered: list[str], means: Means, rounds: int) -> bool:
    found, checks = [], []
    agreed = True
    commands = {name: _tool(name, files.qrels, files.ordered) for name in ("ranx", "ir_measures")}
    if program := environment.trec_eval_program():
        commands["trec_eval"] = _trec_eval(program, files.qrels, files.ordered)
    for name, command in commands.items():
        pair = Pair(name)
        theirs: list[Finished] = []
        ours: list[Finished] = []
        for _ in range(rounds):
            theirs.append(run(command))
            if theirs[-1].returncode:
                break
            ours.append(run(ordered))
        if theirs[-1].returncode:
            checks.append([name, "failed: " + theirs[-1].complaint, ""])
            continue
        pair.other, pair.ours = [each.seconds for each in theirs], [each.seconds for each in ours]
        pair.note = _resources(theirs, ours)
        found.append(pair)
        expected = _trec_eval_means(theirs[-1].stdout) if name == "trec_eval" else json.loads(theirs[-1].stdout)
        worst = max(abs(means[each] - mean) for each, mean in expected.items())
        same = worst <= (ROUNDED if name == "trec_eval" else TOLERANCE)
        agreed &= same
        checks.append([name, f"{len(expected)} of {len(expected)}" if same else "DIFFER", f"{worst:.1e}"])
    if found:
        report.pairs(found, "peer")
        print()
    report.table(["means", "agree within 1e-6, or to four digits", "largest difference"], checks)
    return agreed


def _trec_eval(program: str, qrels: Path, results: Path) -> list[str]:
    """Its command: what has no cutoff there, recip_rank and set_F, is measured without one."""
    cutoffs = ",".join(map(str, CUTOFFS))
    asked = [*(f"{name}.{cutoffs}" for name in PYTREC), "recip_rank", "set_F"]
    return [program, *(word for name in asked for word in ("-m", name)), str(qrels), str(results)]


def _trec_eval_means(text: str) -> Means:
    """The means that it printed, of metrics with a cutoff."""
    names = {f"{theirs}_{k}": f"{ours}@{k}" for theirs, ours in PYTREC.items() for k in CUTOFFS}
    rows = (line.split() for line in text.splitlines())
    return {names[name]: float(mean) for name, _, mean in rows if name in names}


def _resources(theirs: Sequence[Finished], ours: Sequence[Finished]) -> str:
    """Processor seconds and memory of the two, where the system tells."""
    if theirs[0].processor is None:
        return ""
    processor = [f"{statistics.median(one.processor or 0 for one in each):.2f}" for each in (theirs, ours)]
    memory = [f"{max(one.megabytes or 0 for one in each):,.0f}" for each in (theirs, ours)]
    return f"processors {' against '.join(processor)} s, memory {' against '.join(memory)} MB"


def _means(text: str) -> Means:
    """The means in what `--format json` printed."""
    found = json.loads(text)
    while "metrics" not in found:
        found = (
            found[0]
            if isinstance(found, list)
            else next(each for each in found.values() if isinstance(each, (list, dict)))
        )
    return {name: value["mean"] for name, value in found["metrics"].items()}
