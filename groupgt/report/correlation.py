"""Report rank correlations: the coefficients in one sentence, the pairs that swap, and both means of each system."""

from __future__ import annotations

from typing import Any

import numpy as np

from groupgt.comparison.correlation import Correlation, Swap
from groupgt.render import tradeoffs
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.drawing import Figure
from groupgt.render.encodings import About
from groupgt.render.page.data import Sentence
from groupgt.render.results import Teller
from groupgt.render.tables import MARK, Grid, Table, counted, fixed, part_of, signed, small, span
from groupgt.report.sentences import sentence_of

COLUMNS = ("system", "first", "first_rank", "second", "second_rank")


class CorrelationTeller(Teller[Correlation]):
    """Report how closely two rankings of systems agree."""

    main_figure = "correlation"

    def blocks(self) -> list[Item]:
        """Return the sentence, the coefficients, the swaps and the means."""
        result = self.result
        first, second = result.labels
        names = {"tau": "Kendall's tau-b", "tau_ap": f"tau_AP, reference {first}"}
        names |= {"tau_ap_reversed": f"tau_AP, reference {second}"}
        rows = [[name, getattr(result, key), span(result.ranges[key])] for key, name in names.items()]
        items: list[Item] = [Verdict([self._sentence()]), (["coefficient", "value", "95% of resampled queries"], rows)]
        if result.swaps:
            headers = ["better", "worse", f"delta {first}", f"p {first}", f"delta {second}", f"p {second}"]
            items.append((headers, [_swap(swap) for swap in result.swaps]))
        items.append(Detail(Table(*self._means())))
        return [*items, "\n".join(self._notes())]

    def _sentence(self) -> Sentence:
        result = self.result
        first, second = result.labels
        significant = sum(swap.first.significant or swap.second.significant for swap in result.swaps)
        swaps = f"{part_of(len(result.swaps), result.pairs, 'pair', 'swaps', 'swap')}"
        which = f", {significant or 'none'} significantly on either side" if result.swaps else ""
        rest = f" rank {len(result.systems)} systems with a Kendall's tau-b of {fixed(result.tau)} and a tau_AP of "
        rest += f"{fixed(result.tau_ap)} (reference: {first}). {swaps}{which}."
        return sentence_of("same", "", first, " and ", second, rest)

    def _notes(self) -> list[str]:
        """Return notes on what was compared and how the ranges were computed."""
        result = self.result
        one, two = result.sides
        queries = counted(result.shared, "shared query") if result.shared else "no shared queries"
        lines = [f"{_title(one.label, str(one.metric))} against {_title(two.label, str(two.metric))}; {queries}"]
        valued = [side.queries(result.systems) for side in result.sides]
        if set(valued) != {result.shared} and (result.shared or valued[0] != valued[1]):
            means = [f"{_title(side.label, side.text)} over {each:,}" for side, each in zip(result.sides, valued)]
            lines.append(f"means of {' and of '.join(means)} queries")
        for label, count in zip(result.labels, result.left_out):
            if count:
                lines.append(f"left out: {counted(count, 'query')} only in {label}")
        if result.absent:
            lines.append(f"left out: systems on one side only ({', '.join(result.absent)})")
        lines.append("ranges over resampled queries are not confidence intervals")
        drawn = f"{result.settings.resamples:,} resamples, seed {result.settings.seed}"
        together = f"all pairs of a side together (step-down maximum); alpha {result.settings.alpha:g}"
        return [*lines, f"p-values: randomization test, {drawn}, {together}"]

    def _means(self) -> Grid:
        result = self.result
        columns: list[list[Any]] = [list(result.systems)]
        for side, means in zip(result.sides, result.means):
            columns += [means.tolist(), _ranks(side.metric.higher_is_better, means)]
        first, second = result.labels
        headers = ["system", f"mean {first}", f"rank {first}", f"mean {second}", f"rank {second}"]
        return headers, sorted(map(list, zip(*columns)), key=lambda row: row[2])

    def figure(self) -> Figure:
        """Return a plot of the two sides' means against each other, with system names."""
        result = self.result
        means = [each.tolist() for each in result.means]
        points = [{"system": name, "x": x, "y": y} for name, x, y in zip(result.systems, *means)]
        one, two = result.sides
        about = About("", result.shared, "", "", f"tau-b {fixed(result.tau)}, tau_AP {fixed(result.tau_ap)}")
        titles = (_title(one.label, one.text), _title(two.label, two.text))
        return tradeoffs.correlation(points, about, titles)

    def csv_rows(self) -> Grid:
        """Return headers and one row per system."""
        return list(COLUMNS), self._means()[1]

    def to_dict(self) -> Any:
        """Return everything as plain Python."""
        result = self.result
        return {
            "sides": [{"label": side.label, "metric": str(side.metric)} for side in result.sides],
            "tau": result.tau,
            "tau_ap": result.tau_ap,
            "tau_ap_reversed": result.tau_ap_reversed,
            "ranges": dict(result.ranges),
            "queries": {"shared": result.shared, "left_out": list(result.left_out)},
            "systems": [dict(zip(COLUMNS, row)) for row in self._means()[1]],
            "swaps": list(map(_swap_dict, result.swaps)),
            "absent": list(result.absent),
        }


def _title(label: str, text: str) -> str:
    return text if label == text else f"{text}, {label}"


def _ranks(higher_is_better: bool, means: np.ndarray[Any, Any]) -> list[int]:
    """Return the rank of each system. Tied systems have the same rank."""
    values = means if higher_is_better else -means
    return [1 + int((values > value).sum()) for value in values]


def _swap(swap: Swap) -> list[Any]:
    cells: list[Any] = [swap.better, swap.worse]
    for each in (swap.first, swap.second):
        cells += [signed(each.delta), small(each.p_value) + MARK * each.significant]
    return cells


def _swap_dict(swap: Swap) -> dict[str, Any]:
    sides = {"first": swap.first, "second": swap.second}
    fields = ("delta", "p_value", "significant")
    told = {name: {field: getattr(side, field) for field in fields} for name, side in sides.items()}
    return {"better": swap.better, "worse": swap.worse, **told}
