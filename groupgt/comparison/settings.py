"""How systems are compared: one value, printed under every table."""

from __future__ import annotations

from dataclasses import dataclass

from groupgt.comparison.corrections import CORRECTIONS
from groupgt.comparison.significance import TESTS
from groupgt.errors import ConfigError, Faults, listed, near_names
from groupgt.model.ids import shown
from groupgt.render.numbers import counted

__all__ = ["Settings"]

MOST_RESAMPLES = 10**6
HIGHEST_LEVEL = 0.9999


@dataclass(frozen=True)
class Settings:
    """How systems are compared; raises `ConfigError` with everything that is out of range.

    `test` is one of randomization, t, wilcoxon and bootstrap, `correction` one of holm, bonferroni and none; a p-value
    of at most `alpha` is significant. `intervals` is the level of intervals, `resamples` how many are drawn for them
    and for tests, from `seed`. `pairs` compares every two systems as well.
    """

    test: str = "randomization"
    correction: str = "holm"
    alpha: float = 0.05
    intervals: float = 0.95
    resamples: int = 10_000
    seed: int = 0
    pairs: bool = False

    def __post_init__(self) -> None:
        faults = Faults()
        for name, value, known in (("test", self.test, TESTS), ("correction", self.correction, CORRECTIONS)):
            if not isinstance(value, str) or value not in known:
                near = near_names(str(value), known)
                faults.add(name, f"expected {listed(known)}, found {shown(value)}{near}")
        for name, share in (("alpha", self.alpha), ("intervals", self.intervals)):
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share < 1:
                faults.add(name, f"expected a number above 0 and below 1, found {shown(share)}")
            elif name == "intervals" and share > HIGHEST_LEVEL:
                faults.add(name, f"expected a level of at most {HIGHEST_LEVEL}, found {shown(share)}")
        ranges = (("resamples", self.resamples, 1, MOST_RESAMPLES), ("seed", self.seed, 0, 2**32 - 1))
        for name, number, least, most in ranges:
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
                faults.add(name, f"expected a whole number from {least:,} to {most:,}, found {shown(number)}")
        if not isinstance(self.pairs, bool):
            faults.add("pairs", f"expected true or false, found {shown(self.pairs)}")
        faults.stop(ConfigError)

    @property
    def described(self) -> str:
        """The test, in words; where it draws, how much."""
        drawn = f", {counted(self.resamples, 'resample')}, seed {self.seed}"
        return NAMES[self.test] + (drawn if self.draws else "")

    @property
    def draws(self) -> bool:
        """Whether the test draws at random."""
        return self.test in ("randomization", "bootstrap")


NAMES = {
    "randomization": "paired randomization test",
    "t": "Student's paired t test",
    "wilcoxon": "Wilcoxon's signed-rank test",
    "bootstrap": "paired bootstrap test",
}
