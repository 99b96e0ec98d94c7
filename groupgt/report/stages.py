"""Reports where a pipeline loses groups, stage by stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.stages import Stage, Stages
from groupgt.render.document import Item, Table, Verdict
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, counted, part_of
from groupgt.report.means import policy_text
from groupgt.report.sentences import doubt, doubts, sentence_of

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure
    from groupgt.render.page import data

HEADERS = ["stage", "cutoff", "groups covered", "lost here", "gained here", "complete queries"]


class StagesTeller(Teller[Stages]):
    """Reports how many groups each stage of a pipeline loses."""

    main_figure = "stages"
    fields = ("queries", "kept", "stages", "groups", "slices")

    def blocks(self) -> list[Item]:
        """Returns the stage that loses the most groups, and tables of all stages overall and by slice."""
        return [Verdict(list(self._sentences())), *tables_of(self.result)]

    def figure(self) -> Figure:
        """Draws the groups that each stage covers and does not cover."""
        from groupgt.render.encodings import About
        from groupgt.render.tradeoffs import funnel

        stages = self.result
        rows = [
            {"stage": stage.name, "fate": fate, "count": count, "order": order}
            for stage in stages.stages
            for order, (fate, count) in enumerate(
                {"covered": stage.covered, "not covered": len(stages.groups) - stage.covered}.items()
            )
        ]
        first = stages.evaluations[0]
        about = About("groups", stages.queries, "coverage", policy_text(first.policy))
        return funnel(rows, about, stages.stages[0].name)

    def _sentences(self) -> Iterator[data.Sentence]:
        stages = self.result
        total, lost = len(stages.groups), [stage for stage in stages.stages if stage.lost]
        kept = f"{part_of(stages.kept, total, 'group')} covered by the last stage"
        if not lost:
            yield sentence_of("best", f"{kept}: none is lost.")
        else:
            worst = max(lost, key=lambda stage: stage.lost)
            share = f": {worst.lost:,} ({100 * worst.lost / total:.0f} %)."
            yield sentence_of("best", f"{kept}; most are lost at ", worst.name, share)
        if gained := sum(stage.gained for stage in stages.stages):
            text = f"{counted(gained, 'time')} a stage covers a group that the previous stage did not"
            yield doubt(f"{text}: not all of its passages come from there")
        yield from map(doubt, doubts({each.name: each for each in stages.evaluations}))

    def csv_rows(self) -> Grid:
        """Returns headers and one row per group."""
        headers = ["qid", "group", *(stage.name for stage in self.result.stages), "lost"]
        groups = self.result.groups
        return headers, [[each["qid"], each["group"], *map(int, each["covered"]), each["lost"]] for each in groups]


def tables_of(stages: Stages) -> Iterator[Item]:
    """Yields tables of the stages overall and by slice, followed by the number of groups."""
    yield Table(HEADERS, list(map(_row, stages.stages)))
    for each in stages.slices:
        yield f"{each['by']} = {each['value']}"
        yield Table(HEADERS, list(map(_row, each["stages"])))
    yield f"{counted(len(stages.groups), 'group')} of {counted(stages.queries, 'query')}"


def _row(stage: Stage) -> Sequence[Any]:
    return [stage.name, stage.cutoff or "all", stage.covered, stage.lost, stage.gained, stage.complete]
