"""Groups queries into slices (`--by`) or selects queries (`--where`) by a column or by their number of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from groupgt.errors import ConfigError, near_names, refuse
from groupgt.metrics.views import relevant_counts
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.hits import Bools, Ints, Judgments

# Columns of every ground truth: the number of groups of a query, and that of their alternatives.
COUNTS: dict[str, Callable[[Judgments], Ints]] = {
    "n_groups": lambda judgments: judgments.groups,
    "n_alternatives": relevant_counts,
}


def check_columns(truth: GroundTruth, by: Iterable[str], option: str = "by") -> None:
    """Raise a `ConfigError` that names the `option` if a column does not exist."""
    columns = [*COUNTS, *truth.columns]
    expected = f"expected a column of the ground truth ({', '.join(columns)})"
    unknown = (name for name in by if name not in columns)
    refuse(((option, f"{expected}, found {name!r}{near_names(name, columns)}") for name in unknown), ConfigError)


class Slicer:
    """Divides queries into slices; raises a `ConfigError` that names the `option` if a column does not exist."""

    def __init__(self, truth: GroundTruth, by: Sequence[str], option: str = "by") -> None:
        self.truth = truth
        self.by = list(dict.fromkeys(by))
        check_columns(truth, self.by, option)

    def texts(self, name: str) -> list[str]:
        """Return the value of a column for each query, as printed."""
        return list(map(_text, self._values(name)))

    def __iter__(self) -> Iterator[tuple[str, str, Bools]]:
        """Yield (column, value as text, query mask) for each slice, sorted by value, with missing values last."""
        for name in self.by:
            values = self._values(name)
            # Values that print the same are one slice, so that each query is in exactly one.
            order = {_text(value): _order(value) for value in reversed(values)}
            texts = sorted(order, key=lambda text: (order[text], text))
            place = {text: number for number, text in enumerate(texts)}
            numbers = np.array([place[_text(value)] for value in values], dtype=np.int64)
            for text, number in place.items():
                yield name, text, numbers == number

    def _values(self, name: str) -> list[Any]:
        if name in COUNTS:
            return list(COUNTS[name](self.truth.judgments).tolist())
        return [
            value if isinstance(value, (str, int, float, bool)) or value is None else str(value)
            for value in self.truth.columns[name]
        ]


def where(truth: GroundTruth, conditions: Mapping[str, Any]) -> GroundTruth:
    """Select queries by column values, or by lists of accepted values; raise `ConfigError` if none remain."""
    if not conditions:
        return truth
    keep = np.ones(len(truth), dtype=np.bool_)
    for column, chosen in conditions.items():
        values = [_text(value) for value in (chosen if isinstance(chosen, (list, tuple, set)) else [chosen])]
        texts = Slicer(truth, [column], f"where.{column}").texts(column)
        existing = list(dict.fromkeys(texts))
        for value in values:
            if value not in existing:
                some = ", ".join(existing[:20]) + (" …" if len(existing) > 20 else "")
                what = f"no query has the value {value!r}{near_names(value, existing)}"
                raise ConfigError(f"where.{column}: {what}; the values are {some}")
        keep &= np.array([text in values for text in texts], dtype=np.bool_)
    if not keep.any():
        raise ConfigError("where: no query matches")
    return truth if keep.all() else truth.select(np.flatnonzero(keep).tolist())


def _text(value: Any) -> str:
    return "(none)" if value is None else str(value)


def _order(value: Any) -> tuple[int, float, str]:
    if value is None:
        return 2, 0, ""
    if isinstance(value, (int, float)):
        return 0, value, ""
    return 1, 0, str(value)
