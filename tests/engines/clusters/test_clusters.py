"""Real clusters: what they find is what is found here, also when a worker dies in the middle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import groupgt
from tests.engines.clusters.world import (
    METRICS,
    digest,
    in_a_process,
    nested,
    require_java,
    rows,
    same,
    truth,
    truth_rows,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="processes are found by ps and killed by a signal")


def test_spark(tmp_path: Path) -> None:
    spark_folder(tmp_path)
    home = {"SPARK_HOME": str(tmp_path / "spark"), "SPARK_LOCAL_DIRS": str(tmp_path / "local")}
    told = in_a_process("tests.engines.clusters.on_spark", tmp_path, SPARK_LOCAL_IP="127.0.0.1", **home)
    # Spark noticed: work was done again.
    assert told["again"] > 0


def spark_folder(folder: Path) -> None:
    """Give Spark a folder of its own: it writes the work of such a cluster beside its programs."""
    require_java()
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "work":
            (home / each.name).symlink_to(each)


def test_ray(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    # A busy machine takes its time to start.
    in_a_process("tests.engines.clusters.on_ray", tmp_path, RAY_raylet_start_wait_time_s="120")


def test_dask() -> None:
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    import dask.dataframe as dd

    frame = dd.from_pandas(rows().to_pandas(), npartitions=3)
    with dask.config.set({"dataframe.convert-string": False}):
        lists = dd.from_pandas(nested().to_pandas(), npartitions=2)
        truths = dd.from_pandas(truth_rows().to_pandas(), npartitions=2)
    same(frame, lists, truths)


def test_dask_in_processes() -> None:
    dask = pytest.importorskip("dask", reason="Dask is not installed")
    import dask.dataframe as dd

    with dask.config.set(scheduler="processes", num_workers=2):
        found = groupgt.evaluate(truth(), dd.from_pandas(rows().to_pandas(), npartitions=3), METRICS)
    assert digest(found) == digest(groupgt.evaluate(truth(), rows(), METRICS))
