"""Draws random samples of queries in a seeded order. The first n queries of a sample are also a random sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupgt.errors import ConfigError

# The column of ground truth with the sample that a query belongs to.
SAMPLE = "sample"


def sample_of(qids: Sequence[str], size: int, seed: int) -> dict[str, Any]:
    """Draw a random sample, and return its seed, population size (`of`), size (`drawn`) and `order` of queries."""
    if size > len(qids):
        most = f"expected at most {len(qids):,} queries in the sample, because there are no more"
        raise ConfigError(f"{most}, found {size:,}")
    from random import Random

    order = sorted(qids)
    Random(seed).shuffle(order)  # noqa: S311  # not a secret
    return {"seed": seed, "of": len(qids), "drawn": size, "order": order[:size]}


def entry(sample: Mapping[str, Any], qid: str) -> dict[str, Any]:
    """Return the sample record to store with a query's ground truth."""
    order = sample["order"]
    kept = {key: value for key, value in sample.items() if key != "order"}
    return {**kept, "place": order.index(qid) + 1 if qid in order else None}


def sample_fault(qids: Sequence[str], entries: Sequence[Any], population: Sequence[str]) -> str | None:
    """Explain why these queries are not the start of a recorded random sample, or return None if they are."""
    if not entries or not all(isinstance(each, Mapping) and isinstance(each.get("seed"), int) for each in entries):
        return "the audit does not record which sample its queries come from"
    first = entries[0]
    if any({**record, "place": None} != {**first, "place": None} for record in entries):
        return "the audit mixes queries from several samples"
    if first.get("of") != len(population):
        return f"the audit is a sample of {first.get('of')} queries, but the ground truth has {len(population)}"
    if set(qids) != set(sample_of(population, len(qids), first["seed"])["order"]):
        return f"its queries are not the first {len(qids)} in the order of seed {first['seed']}"
    return None
