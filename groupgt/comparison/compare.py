"""`compare`: several runs, one ground truth, a baseline; and the `Comparison` that comes out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from groupgt.comparison import display as shown
from groupgt.comparison.contrast import Contrast, Pair, Row, Scored, comparisons
from groupgt.comparison.display import Findings
from groupgt.comparison.power_analysis import PowerAnalysis
from groupgt.comparison.schema import ComparisonDict, ContrastDict, PairDict, RowDict
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import CorrectionName, TestName
from groupgt.errors import ConfigError, display, near_names, printable
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.options import RequestOptions, takes_options
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.runs import named_runs
from groupgt.evaluation.tables import population
from groupgt.metrics.language import Metric, parse_metric
from groupgt.render import tables
from groupgt.render.document import Item, Verdict, document
from groupgt.render.drawing import Figure
from groupgt.render.exports import nulls
from groupgt.render.results import Result
from groupgt.render.tables import Grid
from groupgt.runtime import pl


class OfSystem(dict[str, Row]):
    """The rows of one system by metric; any spelling of a metric finds its row."""

    def __init__(self, rows: Mapping[str, Row], metrics: Mapping[str, Metric], convention: str) -> None:
        super().__init__(rows)
        self._metrics, self._convention = metrics, convention

    def __missing__(self, metric: str) -> Row:
        wanted = parse_metric(metric, self._convention)
        text = next((text for text, compared in self._metrics.items() if compared == wanted), None)
        if text is None:
            raise ConfigError(
                f"metric {str(metric)!r} is not part of this comparison{near_names(str(metric), self._metrics)}"
            )
        return self[text]


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Findings, Result):
    """Systems side by side, held against a baseline query by query.

    `rows` has a `Row` for each system and metric, `table["dense"]["ndcg@10"]` is one of them; `per_query` holds every
    value. `slices` says where differences come from, `failures` which system meets which group, `headroom` what a
    perfect choice among systems would reach, `pairs` every two systems where `settings.pairs` asks for them.
    `print` shows all of it. `evaluations` is empty where values were read from result folders.
    """

    def __getitem__(self, system: str) -> OfSystem:
        """The rows of one system by metric."""
        if system not in self._by_system:
            names = [scored.name for scored in self.systems]
            raise ConfigError(
                f"system {system!r} is not part of this comparison{near_names(system, names)}; "
                f"known systems: {', '.join(names)}"
            )
        return self._by_system[system]

    @cached_property
    def _by_system(self) -> dict[str, OfSystem]:
        by_system: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            by_system.setdefault(row.system, {})[row.metric] = row
        return {name: OfSystem(rows, self.metrics, self.convention) for name, rows in by_system.items()}

    @cached_property
    def per_query(self) -> pl.DataFrame:
        """A polars frame: `run`, `qid` and one float column a metric, null where a query does not count."""
        frames = [
            pl.DataFrame(
                {
                    "run": pl.Series([scored.name] * len(scored.qids), dtype=pl.String),
                    "qid": pl.Series(list(scored.qids), dtype=pl.String),
                    **{text: pl.Series(column).fill_nan(None) for text, column in scored.values.items()},
                }
            )
            for scored in self.systems
        ]
        return pl.concat(frames)

    def table(self, style: str = tables.DEFAULT) -> str:
        """One table a metric, in any tabulate format; `latex_booktabs` marks what is significant."""
        return document(list(shown.main_blocks(self)), style)

    @property
    def title(self) -> str:
        """What a page of it is called."""
        return f"against {self.baseline}"

    def blocks(self) -> list[Item]:
        """Everything, the verdict first, for `groupgt.render.document` to set."""
        from groupgt.comparison.pictures import Differences
        from groupgt.comparison.verdict import verdict

        return [Verdict(list(verdict(Differences.of(self)))), *shown.items(self), *shown.notes(self)]

    def summary(self) -> str:
        """Short Markdown for a pull request: the verdict, and only what differs significantly from the baseline."""
        verdict = next(item for item in self.blocks() if isinstance(item, Verdict))
        return document([f"## {self.title}", verdict, *shown.changed(self)], "github")

    def csv_rows(self) -> Grid:
        """Headers and a row for each system and metric, of the whole (where `by` is empty) and of each slice."""
        return shown.csv_rows(self)

    def plot(self, name: str = "deltas", *, metric: str | None = None) -> Figure:
        """A figure of `groupgt.render.figures.FIGURES` by one metric, the first where none is named."""
        from groupgt.comparison.pictures import Differences, drawable
        from groupgt.render.figures import figure_named

        return figure_named(name, drawable(Differences.of(self, metric)))

    def _figure(self) -> Figure | None:
        return self.plot("forest")

    def to_html(
        self, path: str | os.PathLike[str], *, metric: str | None = None, corpus: Mapping[str, str] | None = None
    ) -> None:
        """Writes the page of this comparison, one HTML file.

        `metric` decides which system is best, the first where none is named; `corpus` holds texts by id.
        """
        from groupgt.comparison.pictures import Differences
        from groupgt.comparison.report import dataset_of
        from groupgt.render.page.page import single_page
        from groupgt.store.files import write_bytes

        title = f"against {self.baseline}" if len(self.systems) > 1 else self.baseline
        dataset = dataset_of(Differences.of(self, metric, **({"passages": corpus} if corpus else {})), title)
        write_bytes(Path(path), single_page(dataset))

    def __repr__(self) -> str:
        names = ", ".join(scored.name for scored in self.systems)
        return printable(f"Comparison({names}; baseline {self.baseline}; {', '.join(self.metrics)})")

    def to_dict(self) -> ComparisonDict:
        """Everything as plain Python, None for what cannot be said: what `--format json` prints."""
        headroom: Any = [asdict(metric) for metric in self.headroom]
        comparison: ComparisonDict = {
            "baseline": self.baseline,
            "convention": self.convention,
            "settings": asdict(self.settings),
            "metrics": {text: str(metric) for text, metric in self.metrics.items()},
            "comparisons": comparisons(self.rows),
            "rows": [_row(row) for row in self.rows],
            "pairs": [_pair(pair) for pair in self.pairs],
            "slices": [
                {"by": part.by, "value": part.value, "queries": part.queries, "rows": list(map(_row, part.rows))}
                for part in self.slices
            ],
            "reversals": [
                {"system": row.system, "metric": row.metric, "by": part.by, "value": part.value}
                for row, part, _ in self.reversals()
            ],
            "failures": None if self.failures is None else self.failures.to_dict(),
            "headroom": headroom,
            "warnings": self.warnings,
            "population": self.footer,
        }
        plain: ComparisonDict = nulls(comparison)
        return plain


def comparison_of(
    evaluations: Mapping[str, Evaluation],
    baseline: str,
    settings: Settings,
    metrics: Sequence[str] = (),
    primary: str | None = None,
) -> Comparison:
    """A comparison of evaluations on one ground truth, by some of their metrics or all of them.

    `primary` decides which system is best, the first metric where it is none of these.
    Raises `ConfigError` where the baseline is not among them.
    """
    names = list(evaluations)
    if baseline not in evaluations:
        raise ConfigError(
            f"baseline: expected one of {', '.join(names)}, found {baseline!r}{near_names(baseline, names)}"
        )
    first = evaluations[names[0]]
    texts = [first.text_of(metric) for metric in metrics] or list(first.metrics)
    systems = [Scored.of(name, evaluation, texts) for name, evaluation in evaluations.items()]
    footer = population(list(evaluations.values()), [first.convention])
    wanted = None if primary is None else parse_metric(primary, first.convention)
    text = next((text for text in texts if first.metrics[text] == wanted), None)
    return Comparison(baseline, settings, systems, dict(evaluations), footer, primary=text)


def _row(row: Row) -> RowDict:
    return {
        "system": row.system,
        "metric": row.metric,
        "mean": row.mean,
        "interval": _ends(row.interval),
        "queries": row.queries,
        "significant": row.significant,
        "against_baseline": None if row.against is None else _contrast(row.against),
    }


def _contrast(against: Contrast) -> ContrastDict:
    return {
        "delta": against.delta,
        "delta_interval": _ends(against.delta_interval),
        "pairs": against.pairs,
        "unpaired": against.unpaired,
        "wins": against.wins,
        "ties": against.ties,
        "losses": against.losses,
        "spread": against.spread,
        "effect_size": against.effect_size,
        "raw_p_value": against.raw_p_value,
        "p_value": against.p_value,
        "differ": against.differ,
    }


def _pair(pair: Pair) -> PairDict:
    return {
        "first": pair.first,
        "second": pair.second,
        "metric": pair.metric,
        "tukey": pair.tukey,
        "against": _contrast(pair.against),
    }


def _ends(interval: tuple[float, float]) -> list[float] | None:
    return None if math.isnan(interval[0]) else list(interval)


@takes_options(RequestOptions)
def compare(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str],
    metrics: Sequence[str | Metric],
    *,
    baseline: str | None = None,
    test: TestName = "randomization",
    correction: CorrectionName = "holm",
    alpha: float = 0.05,
    intervals: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    pairs: bool = False,
    **options: Unpack[RequestOptions],
) -> Comparison:
    """Measures several runs and says which differences are real.

    Every mean and every delta has a bootstrap interval. Raises `DataError`, `MetricError` or `ConfigError`.

    Args:
        baseline: The run to compare with (default: the first).
        test: The paired test: `randomization`, `t`, `wilcoxon` (these two need SciPy) or `bootstrap`.
        correction: What is done about many comparisons, over all of the table: `holm`, `bonferroni` or `none`.
        alpha: A difference is significant where its p-value is at most this.
        intervals: The level of intervals.
        resamples: How many are drawn at random.
        seed: Fixes all that is drawn: the same bits every time.
        pairs: Compare every two runs as well.

    >>> truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    >>> half, whole = {qid: ["a", "x"] for qid in truth}, {qid: ["b", "c"] for qid in truth}
    >>> table = compare(truth, {"half": half, "whole": whole}, ["recall@2"])
    >>> row = table["whole"]["recall@2"]
    >>> row.delta, row.wins, row.p_value  # 2 of the 2^12 sign patterns are as far
    (0.5, 12, 0.00048828125)
    """
    settings = Settings(test, correction, alpha, intervals, resamples, seed, pairs)
    named = named_runs(runs, least=2)
    if baseline is not None and not isinstance(baseline, str):
        raise ConfigError(f"baseline: expected the name of a run, found {display(baseline)}")
    request = Request.of(metrics, **options)
    evaluations = {each.name: each for each in evaluate_each(request, request.truth_of(truth), named)}
    return comparison_of(evaluations, next(iter(evaluations)) if baseline is None else baseline, settings)


@takes_options(RequestOptions)
def power(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any] | str | os.PathLike[str],
    metrics: Sequence[str | Metric],
    *,
    baseline: str | None = None,
    difference: float | None = None,
    wanted: float = 0.8,
    test: TestName = "randomization",
    correction: CorrectionName = "holm",
    alpha: float = 0.05,
    **options: Unpack[RequestOptions],
) -> PowerAnalysis:
    """How large a difference these queries can show, and how many queries show a wanted one. Needs SciPy.

    From the differences of each run to the baseline, query by query. Raises `DataError`, `MetricError` or
    `ConfigError`.

    Args:
        baseline: The run to compare with (default: the first).
        difference: The difference to show (default: the observed one).
        wanted: The power with which to show it.
        test: The paired test: `randomization`, `t`, `wilcoxon` or `bootstrap`.
        correction: Unless this is `none`, alpha is divided by the number of comparisons.
        alpha: A difference is significant where its p-value is at most this.
    """
    comparison = compare(
        truth,
        runs,
        metrics,
        baseline=baseline,
        test=test,
        correction=correction,
        alpha=alpha,
        resamples=1,  # no interval is shown
        **options,
    )
    return comparison.power(difference=difference, wanted=wanted)
