"""Writes the Markdown summary of a run for a pull request."""

from __future__ import annotations

from groupgt.errors import printable
from groupgt.experiment.outcome import Outcome
from groupgt.render.document import Item, Verdict, document
from groupgt.report import across as datasets
from groupgt.report import gates, previous
from groupgt.report.comparison import changed
from groupgt.report.experiment import across, sentences


def summary(outcome: Outcome) -> str:
    """Summarizes gates, then each data set: verdict, failed gates, primary metric, and queries lost and gained."""
    first = [*gates.sentences(outcome.gates, timed=False), *across(outcome, timed=True)]
    parts: list[Item] = [f"## {outcome.experiment.title}"]
    for dataset, evaluations in outcome.evaluations.items():
        verdict = sentences(outcome, dataset, timed=True, brief=True)
        if len(outcome.evaluations) == 1:
            parts.append(Verdict([*first, *verdict]))
        else:
            parts += [*([Verdict(first)] if len(parts) == 1 else []), f"### {dataset}", Verdict(verdict)]
        parts += gates.failed(outcome, dataset)
        if evaluations:
            parts += changed(outcome.systems[dataset])
            parts += previous.blocks(outcome, dataset)
    if outcome.across is not None:
        parts += datasets.tables(outcome.across)
    if outcome.folder is not None and (outcome.folder / "report.html").is_file():
        parts.append("Every query: open `report.html` in the result folder of this run.")
    return document(outcome.experiment.hide.sure(parts), "github")


def failure_summary(title: str, why: str) -> str:
    """Summarizes a run that ended in an error; the error is shown as literal text, not as Markdown."""
    lines = "\n".join(f"    {line}" for line in printable(why).splitlines())
    return f"## {title}\n\nThe run failed before any gate was evaluated:\n\n{lines}"
