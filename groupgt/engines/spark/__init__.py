"""Evaluation on Apache Spark: `label` for the engine, `per_query` and `means` for those who go on there."""

from __future__ import annotations

from groupgt.engines.spark.plan import BROADCAST, label, renamed
from groupgt.engines.spark.queries import means, per_query

__all__ = ["BROADCAST", "label", "means", "per_query", "renamed"]
