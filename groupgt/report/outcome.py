"""Reports an `Outcome`: printed text, exported data, figures, and a summary for a pull request."""

from __future__ import annotations

from typing import Any

from groupgt.errors import printable
from groupgt.experiment.outcome import Outcome
from groupgt.render import tables
from groupgt.render.document import Item, Verdict, document
from groupgt.render.drawing import Drawable
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid
from groupgt.report import across as datasets
from groupgt.report import gates, previous
from groupgt.report.comparison import changed
from groupgt.report.experiment import across, drawable, items, sentences, text
from groupgt.report.page import page_bytes_of
from groupgt.report.results import means_grid, results_of
from groupgt.report.tracking import tracked


class OutcomeTeller(Teller[Outcome]):
    """Reports the verdict, the tables of every data set with notes on the population, and the gates."""

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self.result.experiment.title

    @property
    def main_figure(self) -> str:
        """The name of the forest plot if there is only one data set; otherwise empty."""
        return "means" if sum(map(bool, self.result.evaluations.values())) == 1 else ""

    def blocks(self) -> list[Item]:
        """Returns the full report except times."""
        return list(items(self.result))

    def metrics(self) -> dict[str, float]:
        """Returns the means of each system as a flat dict; with several data sets, names begin with the data set."""
        several = len(self.result.evaluations) > 1
        return tracked(
            (
                [*([dataset] if several else []), system],
                {evaluation.label_of(text): mean for text, mean in evaluation.deciding.items()},
            )
            for dataset, by_system in self.result.evaluations.items()
            for system, evaluation in by_system.items()
        )

    def csv_rows(self) -> Grid:
        """Returns headers and one row per mean, overall and for each slice, as in means.csv."""
        return means_grid(self.result)

    def to_dict(self) -> Any:
        """Returns everything except times as plain Python, as in results.json."""
        return nulls(results_of(self.result))

    def figures(self, dataset: str | None = None) -> Drawable:
        """Returns the figures of the requested data set, or of the only one."""
        return drawable(self.result, dataset)

    def text(self, style: str = tables.DEFAULT) -> str:
        """Returns the text that is saved in the result folder."""
        return text(self.result, style)

    def page(self) -> bytes:
        """Returns the HTML page of the experiment."""
        return page_bytes_of(self.result)


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
