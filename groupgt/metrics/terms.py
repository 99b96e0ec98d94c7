"""Formats numbers and terms as arithmetic (`+ - * / **`, brackets and `log2`) that tests evaluate."""

from __future__ import annotations

from collections.abc import Iterable


def number(value: float | str) -> str:
    """Format a number with up to 12 digits. Text stays as it is."""
    if isinstance(value, str):
        return value
    text = str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.12g}"
    return f"({text})" if value < 0 else text


def plus(terms: Iterable[float | str]) -> str:
    """Join terms as `a + b`, or return `0` if there are none."""
    return " + ".join(map(number, terms)) or "0"


def times(*factors: float | str) -> str:
    """Join factors as `a*b`, leaving out factors of 1."""
    return "*".join(factor for factor in map(number, factors) if factor != "1") or "1"


def over(numerator: float | str, denominator: float | str) -> str:
    """Format `(numerator) / (denominator)`, or `0` if either is 0."""
    parts = number(numerator), number(denominator)
    return "0" if "0" in parts else " / ".join(map(_bracketed, parts))


def at_most_one(text: str, value: float, ideal: float) -> str:
    """Return the share unchanged, or `min(1, share)` if the value exceeds the ideal."""
    return f"min(1, {text})" if value > ideal > 0 else text


def log_share(rank: int, gain: float = 1.0) -> str:
    """Format `gain/log2(rank+1)`."""
    return f"{number(gain)}/log2({rank}+1)"


def rank_share(rank: int, gain: float = 1.0) -> str:
    """Format `gain/rank`."""
    return f"{number(gain)}/{rank}"


def _bracketed(text: str) -> str:
    return text if all(letter.isalnum() or letter == "." for letter in text) else f"({text})"
