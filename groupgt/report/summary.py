"""The short Markdown for a pull request that a run writes."""

from __future__ import annotations

from groupgt.errors import printable
from groupgt.experiment.outcome import Outcome
from groupgt.render.document import Item, Verdict, document
from groupgt.report import gates
from groupgt.report.comparison import changed
from groupgt.report.experiment import across, sentences


def summary(outcome: Outcome) -> str:
    """The verdict, gates that failed, and what differs significantly from the baseline."""
    parts: list[Item] = [f"## {outcome.experiment.title}", Verdict(list(across(outcome, timed=True)))]
    for dataset in outcome.evaluations:
        if len(outcome.evaluations) > 1:
            parts.append(f"### {dataset}")
        parts.append(Verdict(sentences(outcome, dataset, timed=True)))
        parts += gates.failed([gate for gate in outcome.gates if gate.dataset == dataset])
        if dataset in outcome.comparison:
            parts += changed(outcome.comparison[dataset])
    return document(outcome.experiment.hide.sure(parts), "github")


def failure_summary(title: str, why: str) -> str:
    """The summary of a run that ended in an error, as text that no Markdown is read in."""
    lines = "\n".join(f"    {line}" for line in printable(why).splitlines())
    return f"## {title}\n\nThe run failed, and no gate was judged:\n\n{lines}"
