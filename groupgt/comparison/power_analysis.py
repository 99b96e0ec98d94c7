"""What a power analysis found, and how it is shown: a verdict, a table, and the curve of power against queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from groupgt.comparison.contrast import Row
from groupgt.comparison.power import Differences, Power
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import SLACK, TESTS
from groupgt.errors import ConfigError
from groupgt.evaluation.verdict import NAMED, doubt
from groupgt.render import tradeoffs
from groupgt.render.document import Detail, Item, Table, Verdict
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.exports import nulls
from groupgt.render.page import data
from groupgt.render.results import Result
from groupgt.render.tables import Grid, counted, fixed, signed

# Numbers of queries beyond this are not told apart.
MILLION = 10**6
# Points of a curve of power, and systems that have one.
POINTS, CURVES = 16, 8


@dataclass(frozen=True)
class PowerAnalysis(Result, Sequence[Power]):
    """A `Power` for each system and metric, of the whole and then of each slice.

    `wanted` is the power to be reached, `alpha` that of each comparison of the whole; `labels` are what tables call
    metrics, `footer` says what was measured, `rows` and `settings` hold what was compared and how.
    """

    powers: tuple[Power, ...]
    wanted: float
    baseline: str
    alpha: float
    whose: str
    labels: Mapping[str, str] = field(repr=False)
    footer: Sequence[str] = field(default=(), repr=False)
    rows: Sequence[Row] = field(default=(), repr=False)
    settings: Settings = field(default_factory=Settings, repr=False)
    about: About | None = field(default=None, repr=False)
    warnings: Sequence[str] = field(default=(), repr=False)

    def blocks(self) -> list[Item]:
        """What these queries detect, a row for each system and metric, and whose power it is."""
        share = f"{100 * self.wanted:g} %"
        headers = ["run", "metric", "queries", "delta", "SD of differences", f"detectable at {share} power"]
        headers += ["wanted", "power", "queries needed"]
        rows: list[list[Any]] = []
        for row in self.powers:
            least = "none" if row.detectable is None and row.reached is not None else row.detectable
            asked = [signed(row.difference), fixed(row.reached, 2), _needed_text(row)]
            measured = [row.system, self.labels[row.metric], row.queries, signed(row.delta), row.spread]
            rows.append([*self._slice(row), *measured, least, *asked])
        note = f"against {self.baseline}: {self.whose}, two-sided, alpha {self.alpha:.4g} per comparison; "
        note += f"queries needed for {share} power"
        shed = ("SD of differences", "wanted", "power", "delta", "queries")
        table = Table([*self._slice_headers, *headers], rows, shed, len(self._slice_headers) + 2)
        return [Verdict(list(self._verdict())), table, note, Detail("\n".join(self.footer))]

    def _verdict(self) -> Iterator[data.Sentence]:
        """By the first metric, for up to three systems: whether these queries are enough, and how many would be."""
        whole = [row for row in self.powers if not row.by and row.metric == next(iter(self.labels))]
        for row in whole[:NAMED]:
            yield self._sentence(row)
        yield from map(doubt, self.warnings)

    def _sentence(self, row: Power) -> data.Sentence:
        label, queries = self.labels[row.metric], counted(row.queries, "query", "queries")
        parts = ["", row.system, f" against {self.baseline}: "]
        if row.reached is None:
            parts[2] += f"no query differs in {label}, so nothing can be said of power."
            return {"kind": "doubt", "parts": parts}
        power = f"{100 * row.reached:.3g} % power to detect a difference of {signed(row.difference)} in {label}"
        parts[2] += f"{queries} {'has' if row.queries == 1 else 'have'} {power}; {100 * self.wanted:g} % "
        needed = _needed_text(row).replace(">", "more than ")
        parts[2] += f"takes {needed} queries" if row.needed is not None else "is never reached"
        enough = row.reached >= self.wanted
        if row.detectable is not None and not enough:
            parts[2] += f", or a difference of {fixed(row.detectable)}"
        parts[2] += "."
        return {"kind": "gain" if enough else "same", "parts": parts}

    def plot(self) -> Figure:
        """A figure of power against the number of queries, by the first metric.

        Raises `ConfigError` where no system differs from the baseline.
        """
        contrasts = {(row.system, row.metric): row.against for row in self.rows}
        points: list[dict[str, Any]] = []
        metric = next(iter(self.labels))
        known = [row for row in self.powers if not row.by and row.metric == metric and row.reached is not None]
        if not known or self.about is None:
            raise ConfigError(f"no system differs from {self.baseline}, so there is no curve of power")
        most = max(min(row.needed or row.queries * 16, row.queries * 16) for row in known)
        queries = max(row.queries for row in known)
        for row in known[:CURVES]:
            contrast = contrasts[row.system, metric]
            if contrast is None:
                continue
            differences = Differences.of(contrast)
            for count in _steps(max(queries // 8, 2), max(most, queries) * 2):
                value = differences.power(row.difference, count, row.alpha, self.settings.test)
                points.append({"system": row.system, "difference": row.difference, "queries": count, "power": value})
        return tradeoffs.power(points, self.about, self.wanted, queries, self.baseline)

    def _figure(self) -> Figure | None:
        return self.plot() if self.about is not None and any(row.reached is not None for row in self.powers) else None

    def csv_rows(self) -> Grid:
        """Headers and a row for each system and metric."""
        names = ["system", "metric", "queries", "delta", "spread", "detectable", "difference", "reached", "needed"]
        rows = [[*self._slice(row), *(getattr(row, name) for name in names)] for row in self.powers]
        return [*self._slice_headers, "run", *names[1:-2], "power", "queries_needed"], rows

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python, None for what cannot be said."""
        first = ("by", "value", "alpha")
        rows = [{**{name: getattr(row, name) for name in first}, **_without(asdict(row), first)} for row in self.powers]
        plain: dict[str, Any] = nulls({"power": self.wanted, "rows": rows})
        return plain

    @property
    def _slice_headers(self) -> list[str]:
        return ["by", "slice"] if any(row.by for row in self.powers) else []

    def _slice(self, row: Power) -> list[str]:
        return [row.by, row.value] if self._slice_headers else []

    @overload
    def __getitem__(self, place: int) -> Power: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Power]: ...
    def __getitem__(self, place: int | slice) -> Power | Sequence[Power]:
        return self.powers[place]

    def __len__(self) -> int:
        return len(self.powers)


def _steps(first: int, last: int) -> list[int]:
    """Numbers from first to last, each about as many times the one before."""
    factor = (last / first) ** (1 / (POINTS - 1))
    return sorted({round(first * factor**place) for place in range(POINTS)})


def _without(plain: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name not in names}


def _needed_text(own: Power) -> str:
    if own.needed is None:
        return "–" if own.reached is None else "never" if abs(own.difference) < SLACK else f">{MILLION:,}"
    return f"{own.needed:,}" if own.needed <= MILLION else f">{MILLION:,}"


def whose_power(powers: Sequence[Power], settings: Settings) -> str:
    """Whose power is shown, in words."""
    exact = TESTS[settings.test].title
    if not any(own.exact for own in powers):
        return "paired t test"
    if all(own.exact for own in powers if own.reached is not None):
        return exact
    return f"{exact} where all differences have the same size, paired t test otherwise"
