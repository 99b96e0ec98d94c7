"""Report where a pipeline loses groups, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.stages import Stage, Stages
from groupgt.render.document import Item, Verdict
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, count_text, counted
from groupgt.report.means import policy_text
from groupgt.report.sentences import enumerated, sentence_of, warning, warnings_about

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure
    from groupgt.render.page import data

HEADERS = ["stage", "cutoff", "groups covered", "lost here", "gained here", "complete queries"]


class StagesTeller(Teller[Stages]):
    """Report how many groups each stage of a pipeline loses."""

    main_figure = "stages"
    fields = ("queries", "trials", "kept", "stages", "groups", "slices")

    def blocks(self) -> list[Item]:
        """Return the stage that loses the most groups, and tables of all stages overall and by slice."""
        return list(items(self.result))

    def figure(self) -> Figure:
        """Draw the groups that each stage covers and does not cover."""
        from groupgt.render.encodings import About
        from groupgt.render.tradeoffs import funnel

        stages = self.result
        rows: list[dict[str, Any]] = []
        for stage in stages.stages:
            fates = {"covered": stage.covered, "not covered": stages.total - stage.covered}
            for order, (fate, count) in enumerate(fates.items()):
                rows.append({"stage": stage.name, "fate": fate, "count": count, "order": order})
        first = stages.evaluations[0]
        about = About("groups", stages.queries, "coverage", policy_text(first.policy))
        return funnel(rows, about, stages.stages[0].name)

    def csv_rows(self) -> Grid:
        """Return headers and one row per group."""
        trial = ["trial"] if self.result.trials > 1 else []
        headers = ["qid", "group", *trial, *(stage.name for stage in self.result.stages), "lost"]
        return headers, [
            [each["qid"], each["group"], *(each[name] for name in trial), *map(int, each["covered"]), each["lost"]]
            for each in self.result.groups
        ]


def sentences(stages: Stages) -> Iterator[data.Sentence]:
    """Name the stage that loses the most groups, if any, and warn about gained groups and cutoffs without effect."""
    total, most = stages.total, max(stage.lost for stage in stages.stages)
    worst = [stage.name for stage in stages.stages if stage.lost == most]
    over = f" on average over {stages.trials:,} trials" if stages.trials > 1 else ""
    kept = f"The last stage covers {count_text(stages.kept)} of {counted(total, 'group')}{over}"
    if not most:
        yield sentence_of("best", f"{kept}, and none is lost.")
    else:
        share = f"{count_text(most)} ({100 * most / total:.0f}%)"
        if len(worst) == 1:
            yield sentence_of("best", f"{kept}. Most are lost at ", worst[0], f": {share}.")
        else:
            parts = enumerated(worst, f" lose {share} each.")
            yield sentence_of("same", f"{kept}. No single stage loses most: {parts[0]}", *parts[1:])
    if gained := sum(stage.gained for stage in stages.stages):
        cases = f"in {count_text(gained)} {'case' if gained == 1 else 'cases'}"
        text = f"{cases}, a stage covers a group that the previous stage missed"
        yield warning(f"{text}, so some of the later stage's passages come from elsewhere")
    for stage in stages.stages:
        if stage.cutoff is not None and 0 < stage.depth < stage.cutoff:
            deepest = f"no query has more than {counted(stage.depth, 'result')}"
            yield sentence_of("doubt", "", stage.name, f" is cut at {stage.cutoff:,}, but {deepest}.")
    yield from map(warning, warnings_about({each.name: each for each in stages.evaluations}))


def items(stages: Stages) -> Iterator[Item]:
    """Yield the verdict on a pipeline, tables of its stages overall and by slice, and the number of groups."""
    yield Verdict(list(sentences(stages)))
    yield Table(HEADERS, list(map(_row, stages.stages)))
    for each in stages.slices:
        yield f"{each['by']} = {each['value']}"
        yield Table(HEADERS, list(map(_row, each["stages"])))
    note = f"; numbers are means over {stages.trials:,} trials" if stages.trials > 1 else ""
    yield f"{counted(stages.total, 'group')} of {counted(stages.queries, 'query')}{note}"


def _row(stage: Stage) -> Sequence[Any]:
    numbers = (stage.covered, stage.lost, stage.gained, stage.complete)
    shown = (count_text(each) if isinstance(each, float) else each for each in numbers)
    return [stage.name, stage.cutoff or "all", *shown]
