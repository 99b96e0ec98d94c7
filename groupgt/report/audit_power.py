"""Reports how wide confidence intervals would be for several audit sizes."""

from __future__ import annotations

from typing import Any

from groupgt.comparison.audit_power import AuditPower
from groupgt.render.document import Item, Table
from groupgt.render.exports import nulls
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, counted, fixed


class AuditPowerTeller(Teller[AuditPower]):
    """Reports the expected width of confidence intervals by number of audited queries."""

    def blocks(self) -> list[Item]:
        """Returns a table with one row per system and metric, and a note that explains how widths are estimated."""
        headers, rows = self.csv_rows()
        shown = [[*row[:3], *("–" if width is None else f"±{fixed(width)}" for width in row[3:])] for row in rows]
        systems = self.result.systems
        audited = 0 if systems.audit is None else len(systems.audit.truth)
        audited_count = counted(audited, "audited query")
        note = f"{100 * self.result.level:g} % CI, if the other queries are like the {audited_count}"
        return [Table([*headers[:3], *(f"{size} audited" for size in headers[3:])], shown, keep=3), note]

    def csv_rows(self) -> Grid:
        """Returns headers and one row per system, metric and quantity, with half-widths for each number of queries."""
        widths = self.result.widths
        sizes = list(widths[0].of_mean) if widths else []
        rows: list[list[Any]] = []
        for each in widths:
            for figure, width_of in (("mean", each.of_mean), ("delta", each.of_delta)):
                if width_of:
                    rows.append([each.system, each.metric, figure, *width_of.values()])
        return ["run", "metric", "figure", *map(str, sizes)], rows

    def to_dict(self) -> Any:
        """Returns everything as plain Python."""
        return nulls({"level": self.result.level, "widths": [vars(each) for each in self.result.widths]})
