"""Reports where a pipeline loses groups, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupgt.evaluation.stages import Stage, Stages
from groupgt.render.document import Item, Table, Verdict
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, counted
from groupgt.report.means import policy_text
from groupgt.report.sentences import doubt, doubts

if TYPE_CHECKING:
    from groupgt.render.drawing import Figure
    from groupgt.render.page import data

HEADERS = ["stage", "cutoff", "groups covered", "lost here", "gained here", "complete queries"]


class StagesTeller(Teller[Stages]):
    """A row for each stage, and the share of groups that is lost at it."""

    def blocks(self) -> list[Item]:
        """Where most groups are lost, the stages, and those of each slice."""
        return [Verdict(list(self._sentences())), *tables_of(self.result)]

    main_figure = "stages"

    def figures(self) -> Mapping[str, Callable[[], Figure]]:
        """The groups that each stage covers."""
        return {"stages": lambda: funnel_of(self.result)}

    def _sentences(self) -> Iterator[data.Sentence]:
        found = self.result
        total, lost = len(found.groups), [stage for stage in found.stages if stage.lost]
        verb = "is" if found.kept == 1 else "are"
        kept = f"{found.kept:,} of {counted(total, 'group')} {verb} covered by the last stage"
        if not lost:
            yield {"kind": "best", "parts": [f"{kept}: none is lost."]}
        else:
            worst = max(lost, key=lambda stage: stage.lost)
            share = f"{worst.lost:,} ({100 * worst.lost / total:.0f} %)"
            yield {"kind": "best", "parts": [f"{kept}; most are lost at ", worst.name, f": {share}."]}
        if gained := sum(stage.gained for stage in found.stages):
            text = f"{counted(gained, 'time')} a stage covers a group that the previous stage did not"
            yield {"kind": "doubt", "parts": [f"{text}: not all of its passages come from there."]}
        yield from map(doubt, doubts({each.name: each for each in found.evaluations}))

    def csv_rows(self) -> Grid:
        """Headers and one row per group."""
        names = [stage.name for stage in self.result.stages]
        headers = ["qid", "group", *names, "lost"]
        return headers, [
            [each["qid"], each["group"], *map(int, each["covered"]), each["lost"]] for each in self.result.groups
        ]

    def to_dict(self) -> Any:
        """The stages and every group, as plain Python."""
        found = self.result
        plain = {"queries": found.queries, "kept": found.kept, "stages": found.stages}
        return nulls({**plain, "groups": found.groups, "slices": found.slices})


def tables_of(found: Stages) -> Iterator[Item]:
    """The stages, those of each slice, and the number of groups."""
    yield Table(HEADERS, list(map(_row, found.stages)))
    for each in found.slices:
        yield f"{each['by']} = {each['value']}"
        yield Table(HEADERS, list(map(_row, each["stages"])))
    yield f"{counted(len(found.groups), 'group')} of {counted(found.queries, 'query', 'queries')}"


def funnel_of(found: Stages) -> Figure:
    """The groups that each stage covers, loses there, and has lost before."""
    from groupgt.render.encodings import About
    from groupgt.render.tradeoffs import funnel

    rows = [
        {"stage": stage.name, "fate": fate, "count": count, "order": order}
        for stage in found.stages
        for order, (fate, count) in enumerate(
            {"covered": stage.covered, "not covered": len(found.groups) - stage.covered}.items()
        )
    ]
    first = found.evaluations[0]
    about = About("groups", found.queries, "coverage", policy_text(first.policy))
    return funnel(rows, about, found.stages[0].name)


def _row(stage: Stage) -> Sequence[Any]:
    return [stage.name, stage.cutoff or "all", stage.covered, stage.lost, stage.gained, stage.complete]
