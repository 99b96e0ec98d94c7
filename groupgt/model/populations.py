"""Defines the populations of queries and which of them count.

Every query of a ground truth is answerable (with results in the run, or missing from it), declared unanswerable, or
undefined. `docs/generate/populations.py` lists how each consumer treats each population, and tests check every entry.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from groupgt.model.hits import Bools, Judgments
from groupgt.model.policy import PRESETS, Policy
from groupgt.records import record

# The queries that a metric is defined for: those with groups, declared unanswerable, or with harmful passages.
Queries = Literal["answerable", "unanswerable", "harmful"]


@record
class Populations:
    """Masks of the queries by population, shape (Q,). `present` marks queries with results (None: all queries)."""

    judgments: Judgments
    present: Bools | None = None
    policy: Policy = PRESETS["default"]

    def at_level(self, level: float) -> Populations:
        """Return the populations with documents relevant at this grade or above."""
        return replace(self, judgments=self.judgments.at_level(level))

    @cached_property
    def unanswerable(self) -> Bools:
        """Queries that are declared to have no answer."""
        declared = self.judgments.unanswerable
        return np.zeros(self.judgments.size, dtype=np.bool_) if declared is None else declared

    @property
    def defined(self) -> Bools:
        """Queries with relevant alternatives and, with `undefined=zero`, undefined queries, which then score 0."""
        return self.judgments.defined

    @cached_property
    def undefined(self) -> Bools:
        """Queries for which no metric is defined."""
        return ~(self.defined | self.unanswerable)

    @cached_property
    def absent(self) -> Bools:
        """Queries without results."""
        return np.zeros(self.judgments.size, dtype=np.bool_) if self.present is None else ~self.present

    @cached_property
    def missing(self) -> Bools:
        """Defined queries without results."""
        return self.defined & self.absent

    @cached_property
    def counting(self) -> Bools:
        """Queries that count in means: defined queries or, if the policy skips missing ones, those with results."""
        return self.defined & ~self.absent if self.policy.missing == "skip" else self.defined

    def valued(self, queries: Queries, *, higher_is_better: bool) -> Bools:
        """Return a mask of the queries that have a value of a metric.

        A query without results abstains, whatever the policy for missing queries. If lower values are better, an empty
        ranking has no value.
        """
        if queries == "unanswerable":
            return self.unanswerable
        valued = self.counting
        if queries == "harmful":
            valued = (valued | self.unanswerable) & self.judgments.names_harmful
        return valued if higher_is_better else valued & ~self.absent
