"""Decide each metric's family of comparisons: compute p-values, and intervals that agree with these p-values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from groupgt.comparison.draws import ENOUGH, SLACK
from groupgt.comparison.intervals import delta_intervals
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import Inference, alpha_at, corrected, infer, p_values, place_of
from groupgt.comparison.trials import OverBuilds
from groupgt.evaluation.estimates import Estimate, estimate_of
from groupgt.model.hits import Bools, Floats


@dataclass(frozen=True, eq=False)
class Families:
    """Columns of differences, shape (Q,) each, with the pairs of the first metric first, then those of the second …

    A difference is NaN if the query does not count for both systems. `size` is the number of pairs in a family.
    """

    metrics: Sequence[str]
    columns: Sequence[Floats]
    bounds: Floats
    size: int
    settings: Settings
    builds: Mapping[int, OverBuilds]

    def __iter__(self) -> Iterator[tuple[str, slice]]:
        """Yield each family's metric and the slice of its columns."""
        for place, metric in enumerate(self.metrics):
            yield metric, slice(place * self.size, (place + 1) * self.size)

    def alphas(self, raw: Floats, p_values: Floats, correction: str) -> Floats:
        """Return the alpha for each raw p-value under a correction, shape (C,)."""
        alphas = np.full(len(raw), self.settings.alpha)
        for _, family in self:
            compared, rejected = int((~np.isnan(raw[family])).sum()), int(self.significant(p_values[family]).sum())
            alphas[family] = alpha_at(correction, self.settings.alpha, compared, rejected)
        return alphas

    def significant(self, p_values: Floats) -> Bools:
        """Mark the p-values that are at most alpha."""
        return np.asarray(p_values <= self.settings.alpha)

    def ends_of(self, blocks: Sequence[Block], alphas: Floats, p_values: Floats) -> Floats:
        """Return the interval ends of tested columns, shape (C, 2), NaN for columns in no block."""
        settings, ends = self.settings, np.full((len(self.columns), 2), np.nan)
        for places, block, inference in blocks:
            limits, rejected = self.bounds[places], self.significant(p_values[places])
            ends[places] = delta_intervals(
                block, limits, inference, alphas[places], rejected, settings.resamples, settings.seed
            )
        return ends


class Block(NamedTuple):
    """Columns defined on the same queries, with their indices, their values, shape (n, C), and their test."""

    places: list[int]
    values: Floats
    inference: Inference


class Decided(NamedTuple):
    """The decision about each column: its p-value before and after correction, and its interval's alpha and ends."""

    raw: Floats
    p_values: Floats
    alphas: Floats
    ends: Floats
    ranks: Floats | None = None


Decide = Callable[[Families], Decided]


def decide(families: Families) -> Decided:
    """Test or estimate each column by itself, then correct the p-values of each family."""
    settings, count = families.settings, len(families.columns)
    raw, ranks = np.full(count, np.nan), np.full(count, np.nan)
    alone: dict[int, Estimate | OverBuilds] = {}
    blocks = []
    for place, column in enumerate(families.columns):
        if column.ndim > 1 and (of_column := estimate_of(column, delta=True)) is not None:
            alone[place] = of_column
    for places, values in by_defined_queries(families.columns):
        inference = infer(settings.test, values, settings.resamples, settings.seed, settings.alpha)
        blocks.append(Block(places, values, inference))
    alone |= families.builds
    for places, _, inference in blocks:
        raw[places] = inference.p_values
        if inference.ranks is not None:
            ranks[places] = inference.ranks
    for place, estimate in alone.items():
        raw[place], ranks[place] = estimate.p_value, np.nan
    p_values = np.full(count, np.nan)
    for _, family in families:
        p_values[family] = corrected(settings.corrects, raw[family])
    alphas = families.alphas(raw, p_values, settings.corrects)
    ends = families.ends_of(blocks, alphas, p_values)
    for place, estimate in alone.items():
        low, high = families.bounds[place].tolist()
        ends[place] = estimate.at(1 - float(alphas[place]), (low, high))
    return Decided(raw, p_values, alphas, ends, ranks)


def decided_together(families: Families, raw: Floats, p_values: Floats) -> Decided:
    """Return decisions. Intervals come from each pair's own test at Holm's alpha, if the draws can reach this alpha."""
    settings, blocks = families.settings, []
    alphas = families.alphas(raw, p_values, "holm")
    is_reached = place_of(alphas, settings.resamples) > 0
    for places, values in by_defined_queries(families.columns):
        kept = np.flatnonzero(is_reached[places] | ((np.abs(values) > SLACK).sum(axis=0) < ENOUGH))
        if len(kept):
            chosen, most = [places[at] for at in kept], float(alphas[places][kept].max())
            inference = infer(settings.test, values[:, kept], settings.resamples, settings.seed, most)
            blocks.append(Block(chosen, values[:, kept], inference))
    return Decided(raw, p_values, alphas, families.ends_of(blocks, alphas, p_values))


def raw_p_values(columns: Sequence[Floats], settings: Settings) -> Floats:
    """Return each column's p-value before any correction, shape (C,)."""
    raw = np.full(len(columns), np.nan)
    for places, values in by_defined_queries(columns):
        raw[places] = p_values(settings.test, values, settings.resamples, settings.seed)
    return raw


def by_defined_queries(columns: Sequence[Floats]) -> list[tuple[list[int], Floats]]:
    """Group columns that are defined on the same queries (one value per query), as indices and values (n, C)."""
    groups: dict[tuple[int, bytes], list[int]] = {}
    for place, column in enumerate(columns):
        if column.ndim == 1:
            groups.setdefault((len(column), np.packbits(np.isnan(column)).tobytes()), []).append(place)
    blocks = []
    for places in groups.values():
        is_defined = ~np.isnan(columns[places[0]])
        blocks.append((places, np.stack([columns[place][is_defined] for place in places], axis=1)))
    return blocks
