"""Power: how large a difference a set of questions can show, and how many questions show a wanted one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupgt.comparison.contrast import Row, comparisons
from groupgt.comparison.draws import SLACK
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import scipy_stats
from groupgt.errors import ConfigError, Faults, display
from groupgt.render.numbers import fixed, signed

MOST = 10**9
FAR = 35.0
MILLION = 10**6


@dataclass(frozen=True)
class Power:
    """What the differences of one system by one metric allow: their standard deviation `spread` over `queries` pairs.

    `detectable` is the smallest difference that as many questions show with the wanted power, `needed` how many
    questions show `difference` with it (None: more than 10^9, or nothing differs), `reached` the power with which the
    questions there are show it.
    """

    system: str
    metric: str
    queries: int
    delta: float
    spread: float
    detectable: float | None
    difference: float
    reached: float | None
    needed: int | None


def power(difference: float, spread: float, queries: int, alpha: float = 0.05) -> float:
    """The probability with which a two-sided paired t test at alpha shows a true difference.

    P(|T'| > t), T' noncentral t with n − 1 degrees of freedom and noncentrality √n · difference ÷ spread, t the
    1 − alpha/2 quantile of Student's t. The randomization test has nearly the same power (Hoeffding 1952). Needs SciPy.
    Source: Cohen 1988; Sakai, Information Retrieval 2016.
    """
    stats = scipy_stats("power")
    if queries < 2:
        return 0.0
    if spread < SLACK:
        return 1.0 if abs(difference) > SLACK else 0.0
    degrees, shift = queries - 1, math.sqrt(queries) * abs(difference) / spread
    bound = float(stats.t.isf(alpha / 2, degrees))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = float(stats.nct.sf(bound, degrees, shift)) + float(stats.nct.cdf(-bound, degrees, shift))
    if math.isfinite(found) and shift < FAR:
        return min(found, 1.0)
    # Far out the noncentral distribution is not computed: the shift alone, divided by the spread's own estimate.
    return float(stats.chi2.cdf(degrees * (shift / bound) ** 2, degrees)) if bound > 0 else 1.0


def detectable(spread: float, queries: int, alpha: float = 0.05, wanted: float = 0.8) -> float | None:
    """The smallest difference that so many questions show with the wanted power; None for fewer than two."""
    if queries < 2:
        return None
    if spread < SLACK:
        return 0.0
    low, high = 0.0, spread
    while power(high, spread, queries, alpha) < wanted:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, spread, queries, alpha) >= wanted else (middle, high)
    return high


def needed(difference: float, spread: float, alpha: float = 0.05, wanted: float = 0.8) -> int | None:
    """The smallest number of questions that shows a difference with the wanted power; None where 10^9 do not."""
    if abs(difference) < SLACK:
        return None
    low, high = 1, 2
    while power(difference, spread, high, alpha) < wanted:
        low, high = high, high * 2
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(difference, spread, middle, alpha) >= wanted else (middle, high)
    return high


def power_of(
    rows: Sequence[Row], settings: Settings, *, difference: float | None = None, wanted: float = 0.8
) -> list[Power]:
    """What the observed differences of every system allow; `difference` is the observed one where none is given.

    alpha is divided by the number of comparisons where the table corrects for them. Raises `ConfigError`.
    """
    faults = Faults()
    if isinstance(wanted, bool) or not isinstance(wanted, (int, float)) or not 0 < wanted < 1:
        faults.add("power", f"expected a number above 0 and below 1, found {display(wanted)}")
    if difference is not None and not (math.isfinite(difference) and difference != 0):
        faults.add("difference", f"expected a number other than 0, found {display(difference)}")
    faults.stop(ConfigError)
    alpha = alpha_of(rows, settings)
    found = []
    for row in rows:
        if row.against is None:
            continue
        spread, asked = row.spread, row.delta if difference is None else difference
        # Where nothing differs there is nothing to go by.
        known = row.pairs > 1 and row.differ > 0
        found.append(
            Power(
                row.system,
                row.metric,
                row.pairs,
                row.delta,
                spread,
                detectable(spread, row.pairs, alpha, wanted) if known else None,
                asked,
                power(asked, spread, row.pairs, alpha) if known else None,
                needed(asked, spread, alpha, wanted) if known else None,
            )
        )
    return found


def alpha_of(rows: Sequence[Row], settings: Settings) -> float:
    """The alpha of one comparison: Bonferroni's share where the table corrects."""
    count = comparisons(rows) if settings.correction != "none" else 1
    return settings.alpha / max(count, 1)


def grid(found: Sequence[Power], labels: Mapping[str, str], wanted: float) -> tuple[list[str], list[list[Any]]]:
    """Headers and a row for each system and metric."""
    share = f"{100 * wanted:g} %"
    first = ["run", "metric", "queries", "delta", "spread", f"smallest shown ({share})"]
    rows: list[list[Any]] = []
    for each in found:
        asked = [signed(each.difference), fixed(each.reached, 2), _many(each)]
        own = [each.system, labels[each.metric], each.queries]
        rows.append([*own, signed(each.delta), each.spread, each.detectable, *asked])
    return [*first, "wanted", "power", f"queries needed ({share})"], rows


def _many(found: Power) -> str:
    if found.needed is None:
        return "–" if found.reached is None else "never" if abs(found.difference) < SLACK else f">{MILLION:,}"
    return f"{found.needed:,}" if found.needed <= MILLION else f">{MILLION:,}"
