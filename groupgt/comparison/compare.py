"""`compare`: several runs, one ground truth, a baseline; and the `Comparison` that comes out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from groupgt.comparison import display as shown
from groupgt.comparison.contrast import Contrast, Pair, Row, Scored, comparisons
from groupgt.comparison.display import Findings
from groupgt.comparison.schema import ComparisonDict, ContrastDict, PairDict, RowDict
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import CorrectionName, TestName
from groupgt.errors import ConfigError, display, near_names, printable
from groupgt.evaluation.evaluate import evaluate_each
from groupgt.evaluation.request import Request
from groupgt.evaluation.result import Evaluation
from groupgt.evaluation.tables import population
from groupgt.metrics.language import Metric, parse_metric
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.document import Block, document, drawn
from groupgt.render.drawing import Figure
from groupgt.render.exports import nulls
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
class Comparison(Findings):
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

    def text(self, style: str = tables.DEFAULT) -> str:
        """Everything: the tables, where differences come from, who fails where, the test and the population."""
        return document(list(shown.blocks(self)), style, f"against {self.baseline}")

    def blocks(self, metrics: Sequence[str] | None = None, *, population: bool = True) -> list[Block]:
        """The same as tables and paragraphs; of some metrics alone, where they are named."""
        return list(shown.blocks(self, metrics, population=population))

    def csv_rows(self) -> tuple[list[str], list[list[Any]]]:
        """Headers and a row for each system and metric, of the whole (where `by` is empty) and of each slice."""
        return shown.csv_rows(self)

    def plot(self, name: str = "deltas", *, metric: str | None = None) -> Figure:
        """A figure of `groupgt.render.figures.FIGURES` by one metric, the first where none is named."""
        from groupgt.comparison.pictures import Differences, drawable
        from groupgt.render.figures import figure_named

        return figure_named(name, drawable(Differences.of(self, metric)))

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

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        names = ", ".join(scored.name for scored in self.systems)
        return printable(f"Comparison({names}; baseline {self.baseline}; {', '.join(self.metrics)})")

    def _repr_html_(self) -> str:
        return "".join(drawn(block, "html") for block in shown.blocks(self))

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
    evaluations: Mapping[str, Evaluation], baseline: str, settings: Settings, metrics: Sequence[str] = ()
) -> Comparison:
    """A comparison of evaluations on one ground truth, by some of their metrics or all of them.

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
    return Comparison(baseline, settings, systems, dict(evaluations), footer)


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


def compare(
    truth: Any,
    runs: Mapping[str, Any] | Sequence[Any],
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
    convention: str = "autorag",
    k: int | Sequence[int] = (),
    by: Sequence[str] | str = (),
    policy: Policy | str | dict[str, str] | None = None,
    labeller: Any = "id",
    lengths: Any = None,
    corpus: Any = None,
    truth_format: str | None = None,
    run_format: str | None = None,
    engine: Any = "auto",
) -> Comparison:
    """Measures several runs and says which differences are real.

    `runs` are `{name: run}`, or paths that name themselves; the `baseline` is the first where none is named. Every mean
    and every delta has a bootstrap interval of level `intervals`; `test` is randomization, t, wilcoxon (these two need
    SciPy) or bootstrap, `correction` holm, bonferroni or none, over all comparisons of the table. `seed` fixes all that
    is drawn: the same bits every time. Other options are those of `evaluate`: `convention`, `k`, `by`, `labeller`,
    `lengths`, `corpus`, `engine`. Raises `DataError`, `MetricError` or `ConfigError`.

    >>> truth = {f"q{n}": [["a", "b"], ["c"]] for n in range(12)}
    >>> half, whole = {qid: ["a", "x"] for qid in truth}, {qid: ["b", "c"] for qid in truth}
    >>> table = compare(truth, {"half": half, "whole": whole}, ["recall@2"])
    >>> row = table["whole"]["recall@2"]
    >>> row.delta, row.wins, row.p_value  # 2 of the 2^12 sign patterns are as far
    (0.5, 12, 0.00048828125)
    """
    settings = Settings(test, correction, alpha, intervals, resamples, seed, pairs)
    if not isinstance(runs, (Mapping, Sequence)) or isinstance(runs, str):
        raise ConfigError(f"runs: expected {{name: run}} or a list of paths, found {display(runs)}")
    named = runs if isinstance(runs, Mapping) else dict(enumerate(runs))
    if len(named) < 2:
        raise ConfigError(f"runs: expected at least two, found {len(named)}")
    if baseline is not None and not isinstance(baseline, str):
        raise ConfigError(f"baseline: expected the name of a run, found {display(baseline)}")
    request = Request.of(
        metrics,
        convention=convention,
        k=k,
        by=by,
        policy=policy,
        labeller=labeller,
        lengths=lengths,
        corpus=corpus,
        truth_format=truth_format,
        run_format=run_format,
        engine=engine,
    )
    named_runs = [(str(name) if isinstance(runs, Mapping) else "", run) for name, run in named.items()]
    evaluations = {each.name: each for each in evaluate_each(request, request.truth_of(truth), named_runs)}
    return comparison_of(evaluations, next(iter(evaluations)) if baseline is None else baseline, settings)
