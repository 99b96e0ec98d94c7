"""Read and check manifest.json, in which a result folder records everything that affects its results."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from groupgt.errors import DataError, display
from groupgt.metrics.own import restore
from groupgt.options import read_section
from groupgt.store.stamped import LAST


@dataclass(frozen=True)
class Manifest:
    """Contents of manifest.json: everything that affects the results, and counts for each data set and system."""

    groupgt: str
    python: str
    libraries: dict[str, str]
    files: dict[str, str]
    seed: int
    ground_truth: dict[str, str]
    metrics: list[str]
    policy: str
    config: dict[str, Any]
    systems: dict[str, dict[str, Any]]
    counts: dict[str, dict[str, dict[str, int]]]
    # The convention that `auto` was resolved to.
    convention: str
    # The commit of groupgt, if it ran from a checkout.
    commit: str = ""
    # Warnings that change the meaning of numbers, by data set; earlier versions kept none.
    warnings: dict[str, list[str]] | None = None
    # Properties of metrics that are not built in.
    own_metrics: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def at(cls, folder: Path) -> Manifest:
        """Read the manifest of a result folder, or raise `DataError` if it is invalid."""
        file = folder / LAST
        try:
            written = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: cannot be read: {error}") from None
        manifest, faults = read_section(Manifest, written, display)
        if not faults and manifest._is_complete:
            for name, facts in manifest.own_metrics.items():
                restore(name, facts)
            return cast(Manifest, manifest)
        what = "expected config, metrics, policy, ground truth and counts as this version writes them"
        raise DataError(f"{file}: {what}, found something else; run the experiment again")

    @property
    def _is_complete(self) -> bool:
        """Return whether the manifest has metrics, a data set, and the configuration that groupgt reads."""
        has_contents = bool(self.metrics and self.ground_truth) and set(self.counts) == set(self.ground_truth)
        return has_contents and {"name", "seed", "evaluate"} <= set(self.config)
