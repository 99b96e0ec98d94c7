"""A program, for a process has one cluster of Ray: `python -m tests.engines.clusters.on_ray FOLDER`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import ray

import groupgt
from tests.engines.clusters.world import METRICS, nested, rows, same, truth, truth_rows, with_a_loss


def main(folder: Path) -> None:
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    frame = ray.data.from_arrow(rows().to_arrow())
    same(frame, ray.data.from_arrow(nested().to_arrow()), ray.data.from_arrow(truth_rows().to_arrow()))
    with_a_loss(
        lambda labeller: groupgt.evaluate(truth(), frame, METRICS[:3], labeller=labeller), folder / "killed", os.getpid
    )
    ray.shutdown()
    print(json.dumps({"again": 1}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
