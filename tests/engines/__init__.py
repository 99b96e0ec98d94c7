"""Tests that every carrier and engine gives the same bits."""

from __future__ import annotations

import groupgt


def counts_of(evaluation: groupgt.Evaluation) -> dict[str, int]:
    """The counts, with the repeats that every carrier looks for: files that are streamed aren't searched for others."""
    return {**evaluation.counts, "duplicates": evaluation.labelled.duplicated}
