"""Report how deep to look in rankings to complete a share of queries, and which score thresholds to set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.depth import NEVER, Depth, Depths
from groupgt.evaluation.thresholds import Thresholds
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, fixed
from groupgt.report.means import policy_text, with_slices
from groupgt.report.sentences import NAMED, appended, enumerated, grouped, sentence_of, subject, warning, warnings_about

if TYPE_CHECKING:
    from groupgt.render.drawing import Drawable, Figure
    from groupgt.render.page import data


class DepthsTeller(Teller[Depths]):
    """Report the required depth for each run, share and slice."""

    main_figure = "ecdf"
    fields = ("confidence", "depths")

    @property
    def _unit(self) -> str:
        return self.result[0].unit if self.result else "results"

    def blocks(self) -> list[Item]:
        """Return the verdict, a table of required depths and, as a detail, the method for CIs."""
        depths = self.result
        level = f"{100 * depths.confidence:g}% CI"
        # Few ground truths declare queries unanswerable.
        declared = ["unanswerable"] if any(each.unanswerable for each in depths) else []
        hidden = ["undefined", "missing", *declared, "ever complete"]
        headers = ["run", "share complete", self._unit, level, "queries", *hidden]
        rows: list[list[Any]] = []
        for each in depths:
            cutoff = "–" if not each.queries else "not reached" if each.depth is None else f"{each.depth:,}"
            population = [each.queries, each.undefined, each.missing, *([each.unanswerable] if declared else [])]
            rows.append([each.run, f"{100 * each.share:g}%", cutoff, _range(*each.interval), *population, each.reached])
        grid = with_slices(depths, headers, rows)
        table = Table(*grid, tuple(hidden), len(grid[0]) - len(headers) + 1)
        changes = [f"policy {depths.policy.changes}"] if depths.policy.changes else []
        lines = f"{level}: order statistics\npolicy {depths.policy}"
        return [Verdict(list(self._sentences())), table, *changes, Detail(lines)]

    def _sentences(self) -> Iterator[data.Sentence]:
        """Yield a sentence for each of the first few shares, followed by warnings."""
        by_share = grouped((depth.share, depth) for depth in self.result if not depth.by)
        for depths in list(by_share.values())[:NAMED]:
            yield _sentence(depths, self.result.confidence)
        yield from map(warning, warnings_about({each.name: each for each in self.result.evaluations}))

    def figures(self) -> Drawable:
        """Return the figures that are available for the runs, by name."""
        from groupgt.report.drawings import of_runs

        return of_runs(self.result.evaluations)

    def csv_rows(self) -> Grid:
        """Return headers and one row per depth."""
        names = ("queries", "undefined", "missing", "unanswerable", "reached")
        headers = ["run", "share", self._unit, "low", "high", *names[:-1], "ever_complete"]
        rows = [
            [each.run, each.share, each.depth, *each.interval, *(getattr(each, name) for name in names)]
            for each in self.result
        ]
        return with_slices(self.result, headers, rows)


def _sentence(depths: Sequence[Depth], level: float) -> data.Sentence:
    """Describe the depths of several runs for one share, starting with the smallest."""
    ordered = [depth for depth in depths if depth.queries]
    ordered.sort(key=lambda depth: (NEVER if depth.depth is None else depth.depth, -depth.reached, depth.run))
    if not ordered:
        return warning("There are no queries to evaluate, so there is no depth to report")
    first = ordered[0]
    tied = [first] if first.depth is None else [depth for depth in ordered if depth.depth == first.depth]
    others = ordered[len(tied) :]
    share = f"{100 * first.share:g}% of {counted(first.queries, 'query')}"
    if first.depth is None:
        all_of_it = f"All its results together complete only {100 * first.reached:.3g}%"
        parts = [*subject(first.run), f" never completes {share}. {all_of_it}"]
    else:
        one_interval = first.interval[1] is not None and len({depth.interval for depth in tied}) == 1
        between = f" ({100 * level:g}% CI {_range(*first.interval)})" if one_interval else ""
        within = f"{share} within {counted(first.depth, first.unit[:-1])}{between}"
        parts = [*subject(first.run), f" completes {within}"]
        if len(tied) > 1:
            parts = enumerated([depth.run for depth in tied], f" complete {within}")
    for depth in others[:NAMED]:
        ever = f" completes {100 * depth.reached:.3g}% with all results"
        needs = ever if depth.depth is None else f" needs {depth.depth:,}"
        parts = appended(parts, "; ", depth.run, needs)
    parts[-1] += f"; {len(others) - NAMED:,} more below." if len(others) > NAMED else "."
    return sentence_of("best" if first.depth is not None else "same", *parts)


def _range(low: int | None, high: int | None) -> str:
    """Format a confidence interval, whose bounds may be unknown."""
    if low is None:
        return "–" if high is None else f"at most {high:,}"
    return f"at least {low:,}" if high is None else f"{low:,} to {high:,}"


class ThresholdsTeller(Teller[Thresholds]):
    """Report thresholds for each run and share."""

    main_figure = "thresholds"
    fields = ("answerable", "unanswerable", "thresholds")

    def blocks(self) -> list[Item]:
        """Return the verdict, a table with a row for each tenth of the unanswerable queries, and query counts."""
        thresholds = self.result
        counts = (
            f"{counted(thresholds.answerable, 'answerable query')}, {thresholds.unanswerable:,} declared unanswerable"
        )
        headers = ["run", "threshold", "unanswerable empty", "answerable recall.coverage", "answerable with results"]
        rows: list[list[Any]] = []
        for each in thresholds.thresholds:
            threshold = "none" if each.threshold is None else _number(each.threshold)
            empty, answered = (f"{100 * share:.1f}%" for share in (each.abstains, each.answered))
            rows.append([each.run, threshold, empty, each.recall, answered])
        return [
            Verdict(list(self._sentences())),
            Table(headers, rows, keep=2),
            f"{counts}; groupgt ignores results {'above' if self._distances else 'below'} the threshold",
        ]

    @property
    def _distances(self) -> set[str]:
        """The runs whose scores are distances."""
        return {evaluation.name for evaluation in self.result.evaluations if evaluation.first.run.ascending}

    def _sentences(self) -> Iterator[data.Sentence]:
        full_recall = {each.run: each.recall for each in self.result.thresholds if each.threshold is None}
        queries = counted(self.result.unanswerable, "unanswerable query")
        for each in [each for each in self.result.thresholds if each.asked][:NAMED]:
            part = "all" if each.abstains == 1 < self.result.unanswerable else f"{100 * each.abstains:.3g}% of"
            empty = f" returns nothing for {part} {queries}"
            rest = " without a threshold."
            if each.threshold is not None:
                cost = f"then {fixed(each.recall)}, compared with {fixed(full_recall[each.run])} without a threshold"
                what = "distance threshold" if each.run in self._distances else "threshold"
                rest = f" at a {what} of {_number(each.threshold)}. On the other queries, recall.coverage is {cost}."
            yield sentence_of("best", *subject(each.run), empty + rest)

    def figure(self) -> Figure:
        """Draw recall, and the share of unanswerable queries without results, against the threshold."""
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
        """Return headers and one row per threshold."""
        headers = ["run", "threshold", "abstains", "recall", "answered", "asked"]
        return headers, [[getattr(each, name) for name in headers] for each in self.result.thresholds]


def _number(score: float) -> str:
    """Format a score with enough digits to paste it into a metric."""
    return f"{score!r}".removesuffix(".0")
