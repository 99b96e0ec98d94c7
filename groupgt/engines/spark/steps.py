"""Steps of work on Spark: a session, functions of Arrow, tables sent there, rows put in order, repeats removed."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupgt.errors import ConfigError
from groupgt.runtime import pl

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def session_of(master: str = "", config: Mapping[str, str] | None = None) -> SparkSession:
    """The session at hand, or a new one; its workers run the Python that runs here."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ConfigError(
            "the engine spark needs PySpark: pip install 'groupgt[spark]', and Java 17 or later"
        ) from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("groupgt")
    if master:
        builder = builder.master(master)
    for name, value in (config or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def by_arrow(function: Callable[..., Any], kind: str, *, one: bool = False) -> Callable[..., Column]:
    """A function of Arrow arrays as one of columns; it makes a column, or `one` value of a group."""
    import pyarrow as pa
    from pyspark.sql import functions

    _same_python()
    # What Spark goes by; PyArrow is not there where modules are only imported.
    names = dict.fromkeys(inspect.signature(function).parameters, pa.Array)
    function.__annotations__ = {**names, "return": str if one else pa.Array}
    if not hasattr(functions, "arrow_udf"):
        raise ConfigError("this step needs PySpark 4.1 or later: pip install -U 'groupgt[spark]'")
    made: Any = functions
    column: Callable[..., Column] = made.arrow_udf(function, kind)
    return column


def _same_python() -> None:
    """Has workers on this machine run the Python that runs here, where nobody has said which."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        context = SparkSession.active().sparkContext
        chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    except (AttributeError, PySparkException):
        return  # a client of Spark Connect, whose server decides
    if not chosen and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


def sent(session: Any, table: pl.DataFrame) -> DataFrame:
    """A table as a frame of a session, by Arrow."""
    import pyarrow as pa

    kinds = {"String": pa.string(), "Int64": pa.int64(), "Float64": pa.float64()}
    columns = {name: table[name].to_arrow().cast(kinds[str(kind)]) for name, kind in table.schema.items()}
    frame: DataFrame = session.createDataFrame(pa.table(columns))
    return frame


@dataclass(frozen=True)
class Order:
    """The order of the results of a query: descending score, equal scores by descending bytes of the column `tie`."""

    tie: str

    def best_first(self) -> list[Column]:
        """What rows are sorted by."""
        from pyspark.sql import functions as sql

        return [sql.col("score").desc(), sql.col(self.tie).desc()]

    def best(self) -> Column:
        """The `score` and the `first` of the row that stands first in a group."""
        from pyspark.sql import functions as sql

        return sql.max(sql.struct("score", sql.col(self.tie).alias("first")))

    def before(self, score: str, tie: str) -> Column:
        """Whether a row stands before one with this score and this tie, both columns."""
        from pyspark.sql import functions as sql

        equal = sql.col("score") == sql.col(score)
        return (sql.col("score") > sql.col(score)) | (equal & (sql.col(self.tie) > sql.col(tie)))


def with_ranks(rows: DataFrame, keys: DataFrame, tie: str, *, equals: bool = True) -> DataFrame:
    """The rows with their rank, with how many results of their query are `higher` and `equal`, and with their keys.

    `hit` is true where a row is among the keys, else null. Without `equals` ranks are all that is counted.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    query = Window.partitionBy("qid")
    placed = rows.join(keys.withColumn("hit", sql.lit(True)), ["qid", "doc"], "left")
    placed = placed.withColumn("rank", sql.row_number().over(query.orderBy(*Order(tie).best_first())).cast("long"))
    if not equals:
        return placed
    by_score = query.orderBy(sql.col("score").desc())
    among = by_score.rangeBetween(Window.currentRow, Window.currentRow)
    higher = sql.rank().over(by_score).cast("long") - 1
    return placed.withColumns({"higher": higher, "equal": sql.count(sql.lit(1)).over(among)})


def without_repeats(rows: DataFrame, tie: str) -> DataFrame:
    """Of each (query, document) its best row, and how many there are as `n`."""
    from pyspark.sql import functions as sql

    grouped = rows.groupBy("qid", "doc").agg(sql.count(sql.lit(1)).alias("n"), Order(tie).best().alias("best"))
    columns = [sql.col("qid"), sql.col("doc"), sql.col("best.score").alias("score"), sql.col("n")]
    kept: DataFrame = grouped.select(*columns, *([] if tie == "doc" else [sql.col("best.first").alias(tie)]))
    return kept
