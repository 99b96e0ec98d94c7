"""Reports score thresholds: the lowest ones at which unanswerable queries return nothing, and their cost in recall."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.thresholds import Thresholds
from groupgt.render.document import Item, Table, Verdict
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, counted, fixed
from groupgt.report.means import policy_text
from groupgt.report.sentences import NAMED, sentence_of, subject

if TYPE_CHECKING:
    from groupgt.render.drawing import Drawable, Figure
    from groupgt.render.page import data

HEADERS = ["run", "threshold", "unanswerable empty", "answerable recall.coverage", "answerable with results"]


class ThresholdsTeller(Teller[Thresholds]):
    """Reports thresholds for each run and share."""

    main_figure = "thresholds"

    def blocks(self) -> list[Item]:
        """Returns the verdict, a table in steps of a tenth of the unanswerable queries, and query counts."""
        thresholds = self.result
        answerable = counted(thresholds.answerable, "answerable query")
        note = (
            f"{answerable}, {thresholds.unanswerable:,} declared unanswerable; results below the threshold are ignored"
        )
        rows: list[list[Any]] = []
        for each in thresholds.thresholds:
            threshold = "none" if each.threshold is None else _number(each.threshold)
            rows.append(
                [each.run, threshold, f"{100 * each.abstains:.1f} %", each.recall, f"{100 * each.answered:.1f} %"]
            )
        return [Verdict(list(self._sentences())), Table(HEADERS, rows, keep=2), note]

    def _sentences(self) -> Iterator[data.Sentence]:
        full_recall = {each.run: each.recall for each in self.result.thresholds if each.threshold is None}
        queries = counted(self.result.unanswerable, "unanswerable query")
        for each in [each for each in self.result.thresholds if each.asked][:NAMED]:
            empty = f" returns nothing for {100 * each.abstains:.3g} % of {queries}"
            rest = " without a threshold."
            if each.threshold is not None:
                cost = f"then {fixed(each.recall)}, {fixed(full_recall[each.run])} without a threshold"
                rest = f" from a score of {_number(each.threshold)} on; recall.coverage of the others is {cost}."
            yield sentence_of("best", *subject(each.run), empty + rest)

    def figures(self) -> Drawable:
        """Returns a figure of both shares against the threshold."""
        return {"thresholds": self._figure}

    def _figure(self) -> Figure:
        from groupgt.render.encodings import About
        from groupgt.render.tradeoffs import thresholds

        first = self.result.evaluations[0]
        about = About("share", self.result.answerable + self.result.unanswerable, "coverage", policy_text(first.policy))
        rows = [
            {"system": each.run, "threshold": each.threshold, "figure": figure, "share": share}
            for each in self.result.curves
            for figure, share in (("unanswerable empty", each.abstains), ("recall of answerable", each.recall))
        ]
        return thresholds(rows, about)

    def csv_rows(self) -> Grid:
        """Returns headers and one row per threshold."""
        headers = ["run", "threshold", "abstains", "recall", "answered", "asked"]
        return headers, [[getattr(each, name) for name in headers] for each in self.result.thresholds]

    def to_dict(self) -> Any:
        """Returns everything as plain Python."""
        thresholds = self.result
        counts = {"answerable": thresholds.answerable, "unanswerable": thresholds.unanswerable}
        return {**counts, "thresholds": thresholds.thresholds}


def _number(score: float) -> str:
    """Formats a score with enough digits to paste it into a metric.

    >>> _number(0.35), _number(0.1 + 0.2)
    ('0.35', '0.30000000000000004')
    """
    return f"{score!r}".removesuffix(".0")
