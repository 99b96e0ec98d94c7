"""Compare systems with a baseline and with each other in tables, figures and page data, and describe the tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from groupgt.comparison.across import Beside
from groupgt.comparison.contrast import Contrast, Row, comparisons
from groupgt.comparison.draws import SLACK
from groupgt.comparison.reach import counts_signs, out_of_reach
from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import Basis, Systems, finite, interval
from groupgt.comparison.tests import TESTS
from groupgt.errors import ConfigError, near_names
from groupgt.evaluation.estimates import mean_of, plain_of
from groupgt.model.hits import Floats
from groupgt.render import figures
from groupgt.render.columns import effect_text, level_text
from groupgt.render.document import Block, Item, bare
from groupgt.render.drawing import Figure, template
from groupgt.render.layout import Strong, middle_cut
from groupgt.render.page import data
from groupgt.render.tables import BETTER, DIGITS, WORSE, Table, counted, fixed, shortlist, signed, small, span
from groupgt.report.evidence import method_name
from groupgt.report.means import about, parts_of
from groupgt.report.sentences import grouped

# Number of queries that a scatter plot names.
NAMED = 6
# Tests of differences that do not come from a single ground truth.
ESTIMATED = {"audit": "corrected by the audit", "annotators": "averaged over annotators"}
MEANINGS = {BETTER: "significantly better", WORSE: "significantly worse"}
# Names of intervals, by their basis.
INTERVALS: dict[str, str] = {"": "bootstrap intervals", "audit": "corrected intervals", "annotators": "t intervals"}
# Columns hidden on a narrow terminal, in this order; then CIs and raw p, but never corrected p.
SHED = ("differ", "effect", "queries")
MARK_OF = {"better": BETTER, "worse": WORSE}


def marks_in(items: Iterable[Item]) -> list[str]:
    """Return the marks that occur in the given tables."""
    rows = chain.from_iterable(item.rows for item in map(bare, items) if isinstance(item, Table))
    ends = {cell[-1:] for row in rows for cell in row if isinstance(cell, str)}
    return [mark for mark in MEANINGS if mark in ends]


def corrected_over(settings: Settings, count: int, families: int = 1, correction: str = "") -> str:
    """Describe how p-values are corrected (default: as in the settings), and for how many comparisons."""
    correction = correction or settings.corrects
    if correction == "none":
        return "not corrected"
    each = " per metric" if families > 1 else ""
    return f"corrected ({method_name(correction)}) for {counted(count, 'comparison')}{each}"


def family_sizes(rows: Iterable[Row]) -> tuple[int, int]:
    """Return the number of comparisons in the largest family, and the number of families."""
    families = grouped((row.metric, row.against) for row in rows)
    return max(map(comparisons, families.values()), default=0), len(families)


def pairs_per_metric(systems: Systems) -> int:
    """Return the number of pairs that are tested together."""
    family = ((pair.first, pair.second, pair.metric) for pair in systems.pairs) if systems.pairs else systems.others
    return max(Counter(text for *_, text in family).values(), default=0)


def of_pairs(systems: Systems) -> str:
    """Return the name of the method that decides all pairs together."""
    return systems.settings.of_pairs(is_estimated=bool(systems.basis))


def beyond(contrasts: Mapping[Any, Contrast], settings: Settings, correction: str = "") -> str:
    """Explain why no comparison in a family can be significant, or return an empty text if any can."""
    tested = {name: each for name, each in contrasts.items() if each.differ and not math.isnan(each.raw_p_value)}
    least = out_of_reach(tested, settings, correction)
    if not tested or len(least) < len(tested):
        return ""
    if all(counts_signs(each, settings) for each in tested.values()):
        return f"too few queries differ to reach alpha {settings.alpha:g}"
    return more_resamples(min(least.values()), settings, len(tested))


def more_resamples(least: float, settings: Settings, comparisons: int) -> str:
    """Explain that no p-value can be small enough to be significant, and say how many resamples would be enough."""
    enough = math.ceil(least * (1 + settings.resamples) / settings.alpha - SLACK) - 1
    below = f"cannot give a p-value below {least:.2g} for {counted(comparisons, 'comparison')}"
    drawn = counted(settings.resamples, "resample")
    return f"{drawn} {below}, but alpha is {settings.alpha:g}. Use at least {enough:,} resamples"


def how_tested(settings: Settings, count: int, families: int = 1, marks: Sequence[str] = (), basis: Basis = "") -> str:
    """Describe how comparisons were tested, and explain the marks in their tables."""
    meanings = ", ".join(f"{mark} {MEANINGS[mark]}" for mark in marks)
    over = corrected_over(settings, count, families)
    return f"{described(settings, basis)}, p-values {over}; {meanings}{' at ' if marks else ''}alpha {settings.alpha:g}"


def verdict_by(label: str) -> str:
    """Return a note that names the metric behind the verdict."""
    return f"\nthe verdict is on {label}; other metrics are exploratory"


def described(settings: Settings, basis: Basis = "") -> str:
    """Describe the test, including resamples and seed if it is randomized."""
    if basis:
        return f"t test of differences {ESTIMATED[basis]}"
    return TESTS[settings.test].title + (resampling(settings) if settings.draws else "")


def resampling(settings: Settings) -> str:
    """Return resamples and seed, as text that follows the name of a randomized test or interval."""
    return f", {counted(settings.resamples, 'resample')}, seed {settings.seed}"


def grids(systems: Systems, metrics: Sequence[str]) -> Iterator[Block]:
    """Yield one table per metric with one row per system."""
    level = f"{100 * systems.settings.confidence:g}% CI"
    p_headers = list(dict.fromkeys(["p", p_header(systems.settings)]))
    for text in metrics:
        contrasts = [row.against for row in systems.rows if row.metric == text and row.against is not None]
        of_delta = f"{100 * (contrasts[0].confidence if contrasts else systems.settings.confidence):.3g}% CI of delta"
        against = ["delta", of_delta, *p_headers, "effect", "wins/ties/losses", "differ"]
        headers = [systems.labels[text], "mean", level, "queries", *against]
        rows = [_cells(row, len(p_headers)) for row in systems.rows if row.metric == text]
        if systems.audit is not None:
            headers.append("delta by model's labels")
            means = {name: mean_of(plain_of(columns[text])) for name, columns in systems.tested.items()}
            for row in rows:
                change = means[row[0]] - means[systems.baseline]
                row.append("" if row[0] == systems.baseline else signed(change, DIGITS))
        yield Table(headers, rows, (*SHED, level, "wins/ties/losses", *p_headers[:-1], of_delta))


def p_header(settings: Settings, correction: str = "") -> str:
    """Return the column header for corrected p-values (default: corrected as in the settings)."""
    correction = correction or settings.corrects
    return "p" if correction == "none" else f"p ({method_name(correction)})"


def delta_text(contrast: Contrast | Row) -> str:
    """Format a difference, with a mark if it is significant."""
    each = contrast.against if isinstance(contrast, Row) else contrast
    return signed(contrast.delta, DIGITS) + ("" if each is None else MARK_OF.get(each.standing, ""))


def _cells(row: Row, p_values: int) -> list[Any]:
    mean = [row.system, fixed(row.mean, DIGITS), span(row.interval, DIGITS), row.queries]
    contrast = row.against
    if contrast is None:
        return [*mean, "baseline", *[""] * (4 + p_values)]
    delta = [delta_text(contrast), span(contrast.delta_interval, DIGITS)]
    tested = [small(each, DIGITS) for each in (contrast.raw_p_value, contrast.p_value)[:p_values]]
    counts = f"{contrast.wins:,}/{contrast.ties:,}/{contrast.losses:,}"
    return [*mean, *delta, *tested, effect_text(contrast.effect_size), counts, f"{contrast.differ:,}"]


def beside_rows(beside: Beside) -> Iterator[tuple[str, str, float, float, Contrast]]:
    """Yield each name and metric with the two means and their contrast."""
    for text in beside.metrics:
        for name, contrast in beside.contrasts(text).items():
            yield name, text, *beside.means(name, text), contrast


def beside_grid(
    beside: Beside, metric: str, headers: Sequence[str], first: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Build a table of comparisons. `headers` label the `first` cells of each row, the queries, and the two means."""
    contrasts = beside.contrasts(metric)
    level = 100 * next((each.confidence for each in contrasts.values()), 1 - beside.settings.alpha)
    rows: list[list[Any]] = []
    for name, contrast in contrasts.items():
        means = (fixed(mean, DIGITS) for mean in beside.means(name, metric))
        cells = [contrast.pairs, *means, delta_text(contrast), span(contrast.delta_interval, DIGITS)]
        rows.append([*(first or {}).get(name, [name]), *cells, small(contrast.p_value, DIGITS)])
    return Table([*headers, "delta", f"{level:.3g}% CI", p_header(beside.settings)], rows, keep=len(headers) - 3)


def pairs(systems: Systems, metrics: Sequence[str]) -> Iterator[Block]:
    """Yield a table of all pairs of systems for each metric, if pairs were requested."""
    p_headers = list(dict.fromkeys(["p", p_header(systems.settings, of_pairs(systems))]))
    for text in metrics:
        rows: list[list[Any]] = []
        for pair in (pair for pair in systems.pairs if pair.metric == text):
            contrast = pair.against
            # The mark goes next to the p of the deciding test.
            decisive = small(contrast.p_value, DIGITS) + MARK_OF.get(contrast.standing, "")
            p_values = [small(contrast.raw_p_value, DIGITS), decisive][-len(p_headers) :]
            rows.append([pair.first, pair.second, signed(contrast.delta, DIGITS), *p_values, contrast.pairs])
        if rows:
            yield Table([systems.labels[text], "against", "delta", *p_headers, "queries"], rows, keep=2)


def leaderboards(systems: Systems) -> Iterator[Table]:
    """Yield tables with one row per system, split by cutoff if there are many metrics, the primary metric first."""
    for part in sorted(parts_of(systems.metrics), key=lambda part: systems.primary not in part):
        headers = ["run", *(systems.labels[text] for text in part)]
        yield Table(headers, [[name, *_means(systems, name, part)] for name in systems.names])


def _means(systems: Systems, name: str, metrics: Sequence[str]) -> Iterator[str]:
    for text in metrics:
        mean = systems.means[name][text]
        mark = MARK_OF.get(systems.kind(name, text), "") if systems.is_baseline_named else ""
        is_best = len(systems.names) > 1 and systems.is_best(name, text)
        shown = fixed(mean, DIGITS) + mark
        yield Strong(shown) if is_best else shown


def _against_baseline(systems: Systems) -> Iterator[tuple[str, Contrast]]:
    for name in systems.names:
        if name != systems.baseline and (contrast := systems.between(name, systems.baseline)) is not None:
            yield name, contrast


def differences(systems: Systems) -> Figure:
    """Draw differences from the baseline with CIs."""
    rows = [{"name": name, **_delta(each), "kind": systems.kind(name)} for name, each in _against_baseline(systems)]
    levels = [level_text(each.confidence) for _, each in _against_baseline(systems)]
    stated = about(systems, level=levels[0] if levels else "")
    return figures.forest(rows, stated, delta=True, title=f"Differences against {systems.baseline}")


def _delta(contrast: Contrast | None) -> dict[str, float | None]:
    """Return a difference and the bounds of its CI as a row for figures."""
    if contrast is None:
        return {"value": None, "low": None, "high": None}
    low, high = interval(contrast.delta_interval) or (None, None)
    return {"value": finite(contrast.delta), "low": low, "high": high}


def outcomes(systems: Systems) -> Figure:
    """Draw wins, ties and losses against the baseline."""
    rows = [
        {"system": name, "outcome": outcome, "count": count}
        for name, each in _against_baseline(systems)
        for outcome, count in (("better", each.wins), ("same", each.ties), ("worse", each.losses))
    ]
    return figures.outcomes(rows, about(systems), systems.baseline)


def _two(systems: Systems, first: str | None, second: str | None) -> list[tuple[str, Floats]]:
    """Return two systems to compare (default: the best system and the baseline), with their values."""
    against = second or systems.baseline
    others = [name for name in systems.names if name != against]
    chosen = first or (systems.best if systems.best in others else None) or others[0]
    for name in (chosen, against):
        if name not in systems.values:
            raise ConfigError(f"system {name!r} was not compared{near_names(str(name), systems.names)}")
    return [(name, systems.values[name][systems.primary]) for name in (chosen, against)]


def _gain_kind(gain: float) -> str:
    return "better" if gain > SLACK else "worse" if gain < -SLACK else "same"


def scatter(systems: Systems, first: str | None = None, second: str | None = None) -> Figure:
    """Draw each query's values in two systems, and label the queries whose values differ most."""
    sign = 1 if systems.higher else -1
    (chosen, values), (against, other) = _two(systems, first, second)
    places: dict[tuple[float, float], list[str]] = {}
    for place in np.flatnonzero(~np.isnan(values - other)).tolist():
        places.setdefault((float(other[place]), float(values[place])), []).append(systems.qids[place])
    apart = sorted(places.items(), key=lambda item: -abs(item[0][1] - item[0][0]))
    rows: list[dict[str, Any]] = []
    for (x, y), qids in apart:
        name = middle_cut(shortlist(qids, 1), 30) if len(rows) < NAMED and abs(y - x) > SLACK else ""
        kind = _gain_kind(sign * (y - x))
        rows.append({"x": x, "y": y, "times": len(qids), "qids": shortlist(qids), "kind": kind, "name": name})
    return figures.scatter(rows, about(systems), chosen, against)


def deltas(systems: Systems, first: str | None = None, second: str | None = None) -> Figure:
    """Draw sorted per-query differences between two systems (default: the best system and the baseline)."""
    sign = 1 if systems.higher else -1
    (chosen, values), (against, other) = _two(systems, first, second)
    gains = [(sign * gain, place) for place, gain in enumerate((values - other).tolist()) if not math.isnan(gain)]
    rows = []
    for number, (gain, place) in enumerate(sorted(gains, key=lambda item: (-item[0], item[1])), 1):
        rows.append({"qid": systems.qids[place], "place": number, "delta": sign * gain, "kind": _gain_kind(gain)})
    contrast = systems.between(chosen, against)
    stated = about(systems, level="CI" if contrast is None else level_text(contrast.confidence))
    return figures.deltas(rows, stated, chosen, against, _delta(contrast))


FIGURES = {"differences": differences, "queries": deltas, "scatter": scatter, "outcomes": outcomes}


def templates(systems: Systems) -> dict[str, data.Drawing]:
    """Return templates for the difference figures."""
    label, stated, nothing = systems.label, about(systems), _delta(None)
    sizes = {f"difference in {label}": "$label"}
    return {
        "differences": template(differences(systems), sizes),
        "outcomes": template(outcomes(systems), {f"than {systems.baseline}": "$label"}),
        "queries": template(figures.deltas([], stated, "", "", nothing, bars=True), sizes),
        "queries many": template(figures.deltas([], stated, "", "", nothing, bars=False), sizes),
    }
