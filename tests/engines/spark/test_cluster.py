"""A worker that dies in the middle changes no bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.spark import lost

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(os.name == "nt", reason="processes are found by ps and killed by a signal")
def test_a_worker_that_dies_in_the_middle_changes_no_bit(java: None, tmp_path: Path) -> None:
    import pyspark

    # Spark writes the work of such a cluster into its own folder: it is given one here, with what is in the other.
    home = tmp_path / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            (home / each.name).symlink_to(each)
    folders = {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(tmp_path / "local")}
    others = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    target = tmp_path / "found.json"
    done = subprocess.run(
        [sys.executable, "-m", lost.__name__, str(target)],
        cwd=ROOT,
        env={**os.environ, **folders, **others},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(target.read_text())
    run = lost.rankings()
    for name, policy in lost.STEPS.items():
        own, expected = found[name], lost.in_memory(run, policy)
        assert expected.counts["duplicates"] > 0
        assert own["killed"], f"{name} was over before anything could be killed"
        assert own["killed"]["pid"] not in own["alive"]
        # Spark noticed: work was done again, the lost one is gone, and another came.
        assert own["again"] > 0
        assert own["killed"]["executor"] in own["before"]
        assert own["killed"]["executor"] not in own["after"]
        assert max(map(int, own["after"])) > max(map(int, own["before"]))
        values = expected.values if name == "evaluate" else expected.means
        assert own["lost"] == own["whole"] == lost.digest(values)
