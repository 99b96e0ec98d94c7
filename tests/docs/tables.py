"""Tables in pages that are made from a whole experiment, each below a comment with its name."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from docs.generate.commands import groups
from groupgt.evaluation.result import Evaluation
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.report.run import run_experiment
from tests.docs.blocks import DOCS, ROOT

# Lines of the sweep's comparison that the page shows from the top.
SHOWN = 6


def run(config: str, folder: Path, *changes: str) -> Outcome:
    """Run one of the configurations, with its results in a folder."""
    file = ROOT / "configs" / f"{config}.yaml"
    return run_experiment(file, output=folder, changes=[f"cache={folder / 'cache'}", *changes])


def means(title: str, rows: dict[str, Evaluation]) -> str:
    """Return a table with a row for each evaluation."""
    first = next(iter(rows.values()))
    headers = [title, *map(first.label_of, first.metrics)]
    return tables.table(headers, [[name, *each.means.values()] for name, each in rows.items()])


def with_table(page: str, name: str, table: str) -> str:
    """Return a page with different text in the block below the comment `<!-- name -->`."""
    found = re.search(rf"<!-- {name} -->\n```text\n(.*?)\n```", page, re.DOTALL)
    assert found is not None, name
    return page[: found.start(1)] + table.strip("\n") + page[found.end(1) :]


def commands() -> dict[Path, str]:
    """Return the page of commands with its tables."""
    path = DOCS / "commands.md"
    page = path.read_text(encoding="utf-8")
    start, end = "<!-- commands -->", "<!-- end of commands -->"
    before, after = page.partition(start)[0], page.partition(end)[2]
    return {path: f"{before}{start}\n\n{groups()}\n\n{end}{after}"}


def sweep() -> dict[Path, str]:
    """Return the page of experiments with the best and the last of the sweep's comparison."""
    path = DOCS / "experiments.md"
    with tempfile.TemporaryDirectory() as folder:
        parts = str(run("sweep", Path(folder)).comparison["handbook"]).split("\n\n")
    contrasts = next(part for part in parts if re.match(r"ndcg@10 +mean ", part))
    lines = contrasts.splitlines()
    shown = "\n".join([*lines[:SHOWN], "…", lines[-1]])
    return {path: with_table(path.read_text(encoding="utf-8"), "sweep comparison", shown)}


def chunkings() -> dict[Path, str]:
    """Return the page of chunks with the means of one ground truth under three chunkings."""
    path = DOCS / "how-to" / "chunk-size.md"
    with tempfile.TemporaryDirectory() as folder:
        outcome = run("rechunk", Path(folder))
    rows = {name: own["bm25"] for name, own in outcome.evaluations.items()}
    return {path: with_table(path.read_text(encoding="utf-8"), "rechunk", means("chunks", rows))}
