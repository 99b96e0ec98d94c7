"""What may be given as ground truth or results, and how it becomes a `GroundTruth` or a `Run`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groupgt.engines.choice import Engine
from groupgt.errors import DataError
from groupgt.formats import detect, frames
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.run import Run

__all__ = ["as_ground_truth", "as_run"]


def as_ground_truth(value: Any, policy: Policy, format: str | None = None) -> GroundTruth:
    """A mapping, a path, a frame, or what is a `GroundTruth` already."""
    if isinstance(value, GroundTruth):
        return value
    if isinstance(value, (str, os.PathLike)):
        return detect.read_ground_truth(value, format, policy)
    if isinstance(value, Mapping):
        return GroundTruth.of(value, policy)
    if frames.is_frame(value):
        return frames.truth_of(value, policy)
    kind = type(value).__name__
    raise DataError(f"ground truth: expected {{query id: groups}}, a path or a frame, found {kind}")


def _are_paths(value: Any) -> bool:
    """Whether a value is a list of paths: one run in parts."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(p, (str, os.PathLike)) for p in value)


def as_run(
    value: Any,
    truth: GroundTruth,
    format: str | None = None,
    name: str = "",
    *,
    qids: list[str] | None = None,
    engine: Engine | None = None,
) -> Run:
    """A mapping, a path or several (parts of one run), a frame, or what is a `Run` already.

    Results without query ids follow `qids`, or the ground truth.
    """
    if isinstance(value, (str, os.PathLike)) or _are_paths(value):
        how = engine or Engine()
        if how.name == "spark":
            from groupgt.engines.spark.tables import session_of

            session = session_of(how.options.master, how.options.config)
            value = detect.read_on_spark(session, value, format)
        else:
            streamed = how.name == "streaming"
            value = detect.read_run(value, format, qids=truth.qids if qids is None else qids, streamed=streamed)
    elif frames.is_frame(value):
        value = frames.run_of(value, qids=truth.qids)
    elif not isinstance(value, Run):
        value = Run.of(value)
    run: Run = value
    return replace(run, name=name or run.name)
