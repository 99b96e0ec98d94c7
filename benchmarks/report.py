"""Figures on the screen: what ran, and tables of seconds and ratios."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata

import environment
from tabulate import tabulate

SHOWN = ("groupgt", "numpy", "polars", "click", *environment.PEERS, "numba")


@dataclass
class Pair:
    """Seconds of two things measured in turn, round by round; the ratio is of one round's two."""

    title: str
    other: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    note: str = ""

    def ratios(self, *, inverse: bool = False) -> list[float]:
        pairs = zip(self.other, self.ours, strict=True)
        return [ours / other if inverse else other / ours for other, ours in pairs]


def heading() -> None:
    print(f"Python {platform.python_version()} ({platform.system()} {platform.machine()}), {os.cpu_count()} processors")
    versions = [f"{name} {version}" for name in SHOWN if (version := _version(name))]
    if environment.autorag_version():
        versions.append(f"autorag {environment.autorag_version()}")
    print(", ".join(versions))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def section(title: str, text: str = "") -> None:
    print(f"\n## {title}\n")
    if text:
        print(text + "\n")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(tabulate(rows, headers=headers, tablefmt="github", disable_numparse=True), flush=True)


def seconds(values: Sequence[float]) -> str:
    """The least and the median."""
    return f"{_three(min(values))} / {_three(statistics.median(values))}"


def _three(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def ratio(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def pairs(found: Sequence[Pair], other: str, *, inverse: bool = False) -> None:
    """A row for each pair: ratios first, for seconds depend on the machine and on what else it does."""
    quotient = f"groupgt ÷ {other}" if inverse else f"{other} ÷ groupgt"
    rows = []
    for pair in found:
        ratios = pair.ratios(inverse=inverse)
        least, middle = ratio(min(ratios)), ratio(statistics.median(ratios))
        times = [seconds(pair.other), seconds(pair.ours)]
        rows.append([pair.title, least, middle, *times, len(ratios), pair.note])
    headers = ["", f"{quotient}: min", "median", f"{other} s: min / median", "groupgt s: min / median", "rounds", ""]
    table(headers, rows)
