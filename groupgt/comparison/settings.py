"""Define the settings of a comparison. Options, schemas, errors and footers are derived from these fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge, Gt, Le, Lt

from groupgt.comparison.tests import TESTS, CorrectionName, TestName
from groupgt.options import Doc, check_options

# Methods that test all pairs together, by test, if no correction is named.
OF_PAIRS = {"randomization": "step-down maximum", "t": "studentized range"}


@dataclass(frozen=True)
class Settings:
    """Settings of a comparison. Raises `ConfigError` with all values that are out of range."""

    test: Annotated[TestName, Doc("The paired test; t and wilcoxon need SciPy.")] = "randomization"
    correction: Annotated[
        CorrectionName | None,
        Doc(
            "Correct p-values for the number of systems compared in one metric (default: holm; for all pairs, "
            "step-down maximum, or studentized range with the t test)."
        ),
    ] = None
    alpha: Annotated[float, Gt(0), Lt(1), Doc("Significance level.")] = 0.05
    confidence: Annotated[float, Gt(0), Le(0.9999), Doc("Confidence level.")] = 0.95
    resamples: Annotated[int, Ge(1), Le(10**6), Doc("Number of resamples for confidence intervals and tests.")] = 10_000
    seed: Annotated[int, Ge(0), Le(2**32 - 1), Doc("Random seed; the same seed gives identical results.")] = 0
    pairs: Annotated[bool, Doc("Also compare all pairs of systems.")] = False
    these_queries: Annotated[
        bool, Doc("Make intervals for means cover new trials of these queries, not new queries.")
    ] = False

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def corrects(self) -> CorrectionName:
        """The correction of p-values, except for comparisons of all pairs."""
        return self.correction or "holm"

    def of_pairs(self, *, is_estimated: bool = False) -> str:
        """Return the method for testing all pairs together. With an audit or annotators, p-values are corrected."""
        methods = {} if is_estimated or self.correction is not None else OF_PAIRS
        return methods.get(self.test, self.corrects)

    @property
    def draws(self) -> bool:
        """True if the test uses random numbers."""
        return TESTS[self.test].draws
