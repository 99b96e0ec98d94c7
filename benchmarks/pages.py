"""How large reports are and how long they take: to write, and to open in Chromium from disk.

    python benchmarks/pages.py [--size 10000] [--rounds 5]

needs groupgt with the extra `retrieval` in the Python that runs it; times to open are left out where Chromium is not.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import report  # noqa: E402

import groupgt  # noqa: E402
from tests import browser  # noqa: E402

SYSTEMS, RESULTS, WORDS = 10, 20, 60
# When the first view stands there, with every figure of it drawn.
SHOWN = "document.getElementById('app')?.dataset.shown !== undefined"
DRAWN = f"{SHOWN} && [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn)"
WATCH = f"""
(() => {{
  const look = () => {{
    if (globalThis.shown === undefined && {SHOWN}) globalThis.shown = performance.now();
    if (globalThis.drawn === undefined && {DRAWN}) globalThis.drawn = performance.now();
    requestAnimationFrame(look);
  }};
  look();
}})()
"""


def pages(folder: Path, size: int) -> Iterator[tuple[str, Path, float]]:
    """Each report: its name, where it lies, and the seconds it took to make it of what was evaluated."""
    subprocess.run([sys.executable, ROOT / "examples" / "python_stdlib" / "build.py"], check=True)
    for name in ("sweep", "python_stdlib"):
        outcome = groupgt.run_experiment(ROOT / "configs" / f"{name}.yaml", output=folder)
        evaluations = next(iter(outcome.evaluations.values()))
        queries = next(iter(evaluations.values())).counts["queries"]
        title = f"configs/{name}.yaml: {queries:,} × {len(evaluations)} × {outcome.experiment.config.evaluate.depth}"
        page = folder / f"{name}.html"
        start = time.perf_counter()
        outcome.to_html(page)
        yield title, page, time.perf_counter() - start
    for count in (100, size):
        yield f"made up: {count:,} × {SYSTEMS} × {RESULTS}", *made_up(folder / f"{count}.html", count)


def made_up(page: Path, count: int) -> tuple[Path, float]:
    """Questions of 1 to 4 groups, systems of unequal worth, and a text for every result."""
    draw = random.Random(count)
    words = [f"{draw.randrange(16**6):06x}" for _ in range(5_000)]
    documents = [f"doc_{number:06d}" for number in range(5 * count)]
    truth, runs = {}, {f"system {place}": {} for place in range(SYSTEMS)}
    for number in range(count):
        own = draw.sample(documents, 60)
        groups = [own[4 * place : 4 * place + draw.randint(1, 3)] for place in range(draw.randint(1, 4))]
        truth[f"q{number:05d}"] = groups
        for place, run in enumerate(runs.values()):
            ranking = own[20 : 20 + RESULTS]
            for group in groups:
                if draw.random() < 0.4 + place / 25:
                    ranking[draw.randrange(RESULTS)] = group[0]
            ranking = list(dict.fromkeys(ranking))
            run[f"q{number:05d}"] = dict(zip(ranking, range(len(ranking), 0, -1), strict=True))
    texts = {document: " ".join(draw.choices(words, k=WORDS)) for document in documents}
    table = groupgt.compare(truth, runs, ["ndcg@10", "recall@10", "mrr@10"], convention="coverage", resamples=1000)
    start = time.perf_counter()
    table.to_html(page, corpus=texts)
    return page, time.perf_counter() - start


def opened(tab: browser.Tab, page: Path, rounds: int) -> list[str]:
    """Milliseconds from the request to the first view, and until its figures are drawn: the least and the median."""
    shown, drawn = [], []
    watcher = tab.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)["identifier"]
    for _ in range(rounds):
        tab.call("Page.navigate", url="about:blank")
        tab.call("Page.navigate", url=page.as_uri())
        tab.wait("globalThis.drawn !== undefined", 120)
        shown.append(tab.run("globalThis.shown"))
        drawn.append(tab.run("globalThis.drawn"))
    tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier=watcher)
    return [f"{min(values):,.0f} / {statistics.median(values):,.0f}" for values in (shown, drawn)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    rows = []
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        made = list(pages(Path(temporary), chosen.size))
        tab = stack.enter_context(browser.running()).tab() if browser.found() is not None else None
        for title, page, seconds in made:
            times = ["–", "–"] if tab is None else opened(tab, page, chosen.rounds)
            rows.append([title, f"{page.stat().st_size / 1e6:.2f}", f"{seconds:.2f}", *times])
    headers = [
        "questions × systems × results",
        "MB",
        "written in s",
        "first view, ms: min / median",
        "figures drawn, ms",
    ]
    report.table(headers, rows)
    print(f"\nload at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
