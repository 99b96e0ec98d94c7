"""Report power by number of queries, as sentences, a table and a curve, and CI widths by audit size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groupgt.comparison.draws import SLACK
from groupgt.comparison.power import AuditPower, Differences, Power, PowerAnalysis
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import TESTS
from groupgt.errors import ConfigError
from groupgt.render import tradeoffs
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.drawing import Drawable, Figure
from groupgt.render.encodings import About
from groupgt.render.page import data
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, fixed, shortlist, signed
from groupgt.report.comparison import population_of
from groupgt.report.means import policy_text, with_slices
from groupgt.report.sentences import NAMED, sentence_of, warning, warnings_about

# Larger numbers of queries are not distinguished.
MILLION = 10**6
# Points per power curve, and maximum number of curves.
POINTS, CURVES = 16, 8
# No power is more than this, whatever the t test promises.
CAP = "(capped at the probability that enough queries differ)"


class PowerAnalysisTeller(Teller[PowerAnalysis]):
    """Report whether there are enough queries, and how many would be needed."""

    @property
    def _primary(self) -> list[Power]:
        """The rows that the sentences and the curve use, with power for the primary metric over all queries."""
        return [row for row in self.result.powers if not row.by and row.metric == self.result.systems.primary]

    @property
    def main_figure(self) -> str:
        """The name of the power curve if any system differs from the baseline, otherwise empty."""
        return "power" if any(row.reached is not None for row in self.result.powers) else ""

    def blocks(self) -> list[Item]:
        """Return the verdict, a table with one row per system and metric, and the test behind the power values."""
        analysis = self.result
        labels, share = analysis.systems.labels, f"{100 * analysis.power:g}%"
        headers = ["run", "metric", "queries", "delta", "SD of differences", f"detectable at {share} power"]
        headers += ["target", "power", "queries needed"]
        rows: list[list[Any]] = []
        for row in analysis.powers:
            least = "none" if row.detectable is None and row.reached is not None else row.detectable
            needs = [signed(row.difference), fixed(row.reached, 2), _needed_text(row)]
            rows.append([row.system, labels[row.metric], row.queries, signed(row.delta), row.spread, least, *needs])
        whose = whose_power(analysis.powers, analysis.systems.settings)
        note = f"against {analysis.baseline}: {whose}, two-sided, alpha {analysis.alpha:.4g} per comparison; "
        note += f"queries needed are for {share} power"
        shed = ("SD of differences", "target", "power", "delta", "queries")
        grid = with_slices(analysis.powers, headers, rows)
        table = Table(*grid, shed, len(grid[0]) - len(headers) + 2)
        population = "\n".join(population_of(analysis.systems))
        warnings = [warning(text) for text in warnings_about(analysis.systems.evaluations)]
        if built := list(analysis.systems.builds):
            what = "the measured builds. Other builds may differ by more"
            warnings.append(warning(f"the power of {shortlist(built)} applies to {what}"))
        sentences = [*map(self._sentence, self._primary[:NAMED]), *warnings]
        return [Verdict(sentences), table, note, Detail(population)]

    def _sentence(self, row: Power) -> data.Sentence:
        """Report for one system whether there are enough queries, and how many would be needed."""
        label, queries = self.result.systems.labels[row.metric], counted(row.queries, "query")
        start = f" against {self.result.baseline}: "
        if row.reached is None:
            rest = f"no query differs in {label}, so power cannot be estimated."
            return sentence_of("doubt", "", row.system, start + rest)
        power = f"{100 * row.reached:.3g}% power to detect a difference of {signed(row.difference)} in {label}"
        rest = f"{queries} {'has' if row.queries == 1 else 'have'} {power}. "
        wanted, enough = f"{100 * self.result.power:g}%", row.reached >= self.result.power
        needed = _needed_text(row).replace(">", "more than ")
        has_other = row.detectable is not None and not enough
        if row.needed is not None:
            rest += f"{wanted} power needs {needed} queries"
            rest += f" or a difference of {fixed(row.detectable)}" if has_other else ""
        else:
            rest += f"No realistic number of queries reaches {wanted} power"
            rest += f", but a difference of {fixed(row.detectable)} would" if has_other else ""
        return sentence_of("gain" if enough else "same", "", row.system, f"{start}{rest}.")

    def figures(self) -> Drawable:
        """Return a figure of power against the number of queries."""
        return {"power": self._curve}

    def _curve(self) -> Figure:
        systems = self.result.systems
        rows = [row for row in self._primary if row.reached is not None]
        if not rows:
            raise ConfigError(f"no system differs from {systems.baseline}, so there is no power curve")
        most = max(min(row.needed or row.queries * 16, row.queries * 16) for row in rows)
        queries = max(row.queries for row in rows)
        # Roughly geometric steps.
        start, end = max(queries // 8, 2), max(most, queries) * 2
        factor = (end / start) ** (1 / (POINTS - 1))
        counts = sorted({round(start * factor**place) for place in range(POINTS)})
        points: list[dict[str, Any]] = []
        for row in rows[:CURVES]:
            if (contrast := systems.row_of[row.system, row.metric].against) is not None:
                differences, shared = Differences.of(contrast), {"system": row.system, "difference": row.difference}
                for count in counts:
                    value = differences.power(row.difference, count, row.alpha, systems.settings.test)
                    points.append({**shared, "queries": count, "power": value})
        evaluated = max((row.queries for row in systems.rows), default=0)
        policy = policy_text(systems.first.policy if systems.evaluations else systems.policy)
        about = About(systems.label, evaluated, systems.convention, policy)
        needed = {row.system: _needed_text(row) for row in rows}
        return tradeoffs.power(points, about, self.result.power, queries, systems.baseline, needed)

    def csv_rows(self) -> Grid:
        """Return headers and one row per system and metric."""
        names = ["system", "metric", "queries", "delta", "spread", "detectable", "difference", "reached", "needed"]
        rows = [[getattr(row, name) for name in names] for row in self.result.powers]
        return with_slices(self.result.powers, ["run", *names[1:-2], "power", "queries_needed"], rows)

    def to_dict(self) -> Any:
        """Return everything as plain Python objects, with None for undefined values."""
        rows = [{"by": row.by, "value": row.value, "alpha": row.alpha} | vars(row) for row in self.result.powers]
        return {"power": self.result.power, "rows": rows}


class AuditPowerTeller(Teller[AuditPower]):
    """Report the expected width of confidence intervals by number of audited queries."""

    fields = ("level", "widths")

    def blocks(self) -> list[Item]:
        """Return a table with one row per system and metric, and a note that explains how widths are estimated."""
        headers, rows = self.csv_rows()
        shown = [[*row[:3], *("–" if width is None else f"±{fixed(width)}" for width in row[3:])] for row in rows]
        systems = self.result.systems
        audited = 0 if systems.audit is None else len(systems.audit.truth)
        audited_count = counted(audited, "audited query")
        note = f"{100 * self.result.level:g}% CI, assuming that the other queries resemble the {audited_count}"
        return [Table([*headers[:3], *(f"{size} audited" for size in headers[3:])], shown, keep=3), note]

    def csv_rows(self) -> Grid:
        """Return headers and one row per system, metric and quantity, with half-widths for each number of queries."""
        widths = self.result.widths
        sizes = list(widths[0].of_mean) if widths else []
        rows: list[list[Any]] = []
        for each in widths:
            for figure, width_of in (("mean", each.of_mean), ("delta", each.of_delta)):
                rows += [[each.system, each.metric, figure, *width_of.values()]] if width_of else []
        return ["run", "metric", "figure", *map(str, sizes)], rows


def _needed_text(row: Power) -> str:
    if row.needed is None:
        return "–" if row.reached is None else "never" if abs(row.difference) < SLACK else f">{MILLION:,}"
    return f"{row.needed:,}" if row.needed <= MILLION else f">{MILLION:,}"


def whose_power(powers: Sequence[Power], settings: Settings) -> str:
    """Name the test behind the reported power."""
    exact = TESTS[settings.test].title
    if not any(row.exact for row in powers):
        return f"paired t test {CAP}"
    if all(row.exact for row in powers if row.reached is not None):
        return exact
    return f"{exact} where all differences have the same size, elsewhere paired t test {CAP}"
