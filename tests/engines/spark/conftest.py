"""One session of Spark for all tests of this folder: a process has one context, and starting it takes seconds."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from groupgt.engines.spark.steps import session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No host name is looked up, and nothing listens to the outside.
# Compiling well takes longer than what is compiled runs here.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="session")
def java() -> None:
    """Skips where Spark cannot run."""
    pytest.importorskip("pyspark", reason="the extra groupgt[spark] is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, and there is neither java on the path nor JAVA_HOME")


@pytest.fixture(scope="session")
def spark(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = str(tmp_path_factory.mktemp("spark"))
    config = {**SETTINGS, "spark.sql.shuffle.partitions": "3", "spark.sql.warehouse.dir": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = session_of("local[2]", config)
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()
