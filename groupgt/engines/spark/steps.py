"""Reads frames and files with Spark into the columns that all engines use, without collecting rows."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupgt.errors import ConfigError, DataError, near_names
from groupgt.formats.detect import located
from groupgt.formats.endings import name_of
from groupgt.formats.fields import CALL_COLUMN, CALL_LIST, NESTED
from groupgt.formats.trec import MAX_COLUMNS, MIN_COLUMNS
from groupgt.model.ranking import spark_order
from groupgt.model.run import Remote, Run
from groupgt.model.validity import BLANKS, FORBIDDEN, LONGEST_ID, NUMBER, RANK
from groupgt.runtime import pl, sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A cell that is a number.
SPELLED = rf"^(?:{NUMBER})\z"
# The column in which Spark keeps rows that do not fit the header.
BROKEN = "_broken"
INTEGER_TYPES = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Rows:
    """Results as a frame with `qid` and `doc` as text and `score` as a double; higher is better.

    `tie` is the column that orders equal scores. If rows were `nested`, their score is the negative position, from 0.
    """

    frame: DataFrame
    tie: str = "doc"
    nested: bool = False


def rows_of(value: Any, title: str = "results") -> Rows:
    """Read results from a frame with `qid, doc_id, score | rank`, or with `qid, retrieved_ids` (best first)."""
    frame: DataFrame = value.to_spark() if type(value).__module__.startswith("pyspark.pandas") else value
    names, kinds = frame.columns, dict(frame.dtypes)
    refuse_calls(names, title)
    nested = [name for name in NESTED if name in names]
    if len(nested) > 1:
        raise DataError(f"{title}: expected one column of results, found {' and '.join(nested)}; drop the others")
    if nested and "qid" in names:
        inner = kinds[nested[0]].removeprefix("array<").removesuffix(">")
        if not kinds[nested[0]].startswith("array<"):
            raise DataError(f"{title}: expected lists of ids in the {nested[0]!r} column, found {kinds[nested[0]]}")
        rows = frame.select("qid", sql.posexplode(nested[0]).alias("place", "doc_id"))
        kinds["doc_id"] = inner
        score = -sql.col("place").cast("double")
    else:
        order = next((name for name in ("score", "rank") if name in names), None)
        missing = [name for name in ("qid", "doc_id") if name not in names]
        if missing or order is None:
            expected = "qid, doc_id and score or rank, or qid and retrieved_ids"
            near = near_names(missing[0], names) if missing else ""
            raise DataError(f"{title}: expected the columns {expected}; found {', '.join(names)}{near}")
        if not kinds[order].startswith(("decimal", *INTEGER_TYPES, "float", "double")):
            raise DataError(f"{title}: expected numbers in the {order!r} column, found {kinds[order]}")
        rows, number = frame, sql.col(order).cast("double")
        # Adding zero turns negative zero into positive zero.
        score = (number if order == "score" else -number) + sql.lit(0.0)
    columns = [
        ids(kinds["qid"], "qid", title),
        ids(kinds["doc_id"], "doc_id", title).alias("doc"),
        score.alias("score"),
    ]
    if "parent" in names and not nested:
        columns.append(ids(kinds["parent"], "parent", title))
    return Rows(rows.select(*columns), nested=bool(nested))


def refuse_calls(names: Sequence[str], title: str) -> None:
    """Raise `ConfigError` if results have a call column."""
    calls = [name for name in names if name in (CALL_COLUMN, CALL_LIST)]
    if calls:
        raise ConfigError(
            f"{title}: the {calls[0]} column puts results in the order of search calls, for which all results of a "
            "query are needed in one place, and results on Spark stay where they are; drop the column, or write the "
            "results to parquet and name the files"
        )


def run_of_files(
    session: SparkSession, path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], format: str | None = None
) -> Run:
    """Return a run that Spark will read; reads only the first line now, and only if no suffix indicates the format."""
    paths, chosen, title = located(path, format)
    return Run(Remote(_read(session, paths, chosen)), name=name_of(title), source=title)


def _read(session: SparkSession, paths: list[str], format: str) -> DataFrame:
    """Read the rows of files in the format trec, csv, jsonl or parquet."""

    if format == "trec":
        return _trec(session.read.text(paths, lineSep="\n"))
    if format == "csv":
        return _csv(session, paths)
    return session.read.json(paths) if format == "jsonl" else session.read.parquet(*paths)


def _trec(lines: DataFrame) -> DataFrame:
    """Parse the lines of TREC runs; the score is null in lines that `groupgt.formats.trec` considers invalid."""
    line = sql.regexp_replace("value", r"\r\z", "")
    cells = sql.split(sql.trim(sql.translate("line", "\t\x0b\x0c", "   ")), " +")
    rows = lines.select(line.alias("line")).select("line", cells.alias("cells")).filter("cells[0] != ''")

    def cell(place: int) -> Column:
        return sql.get("cells", sql.lit(place))

    joined = (sql.size("cells") > MIN_COLUMNS) & cell(5).rlike(SPELLED)
    sound = sql.size("cells").between(MIN_COLUMNS, MAX_COLUMNS) & ~joined & ~sql.contains("line", sql.lit("\r"))
    sound &= cell(3).rlike(rf"^(?:{RANK})\z") & cell(4).rlike(SPELLED)
    return rows.select(
        cell(0).alias("qid"), cell(2).alias("doc_id"), sql.when(sound, cell(4)).try_cast("double").alias("score")
    )


def _csv(session: SparkSession, paths: list[str]) -> DataFrame:
    """Read the rows of tables; the score is null if it is not a number or if the row has too few or too many cells."""
    separator = "\t" if paths[0].endswith((".tsv", ".tsv.gz")) else ","
    options: dict[str, Any] = {"header": True, "sep": separator, "escape": '"'}
    names = session.read.options(**options).csv(paths[:1]).columns
    kinds = ", ".join(f"`{name}` string" for name in (*names, BROKEN))
    # All cells are read; otherwise Spark does not count the cells of a row.
    options |= {"columnNameOfCorruptRecord": BROKEN, "columnPruning": False, "enforceSchema": False}
    rows = session.read.options(**options).schema(kinds).csv(paths)
    for name in {"score", "rank"} & set(names):
        text = sql.trim(sql.col(name))
        sound = text.rlike(SPELLED) & sql.col(BROKEN).isNull()
        rows = rows.withColumn(name, sql.when(sound, text).try_cast("double"))
    return rows.drop(BROKEN)


def ids(kind: str, name: str, title: str) -> Column:
    """Return an expression that converts ids to text; raises `DataError` if they are neither text nor whole numbers."""
    if kind not in ("string", *INTEGER_TYPES) and not kind.startswith(("varchar", "char")):
        raise DataError(f"{title}: expected strings or integers in the {name!r} column, found {kind}")
    return sql.col(name).cast("string").alias(name)


def is_result(*names: str) -> Column:
    """Return whether a row has a finite score and valid ids in these columns (default: `qid` and `doc`)."""
    score = sql.col("score")
    holds = score.isNotNull() & ~sql.isnan(score) & (sql.abs(score) < sql.lit(float("inf")))
    for name in names or ("qid", "doc"):
        holds &= is_id(name)
    return sql.coalesce(holds, sql.lit(False))


def is_id(name: str) -> Column:
    """Return whether a column contains a valid id."""
    text = sql.col(name)
    holds = text.isNotNull() & (sql.octet_length(text) <= LONGEST_ID)
    holds &= text.rlike(f"[^{BLANKS}]") & ~text.rlike(f"[{FORBIDDEN}]")
    return sql.coalesce(holds, sql.lit(False))


def truth_rows(frame: DataFrame, title: str = "ground truth") -> DataFrame:
    """Convert ground truth to one row per query: `qid` and `groups`, a list of lists of (id, grade).

    The input is `qid, retrieval_gt` (as in AutoRAG) or `qid, group, doc_id[, grade]`.
    """
    names, kinds = frame.columns, dict(frame.dtypes)
    if "excluded_ids" in names:
        what = "excluded_ids cannot be removed from results on Spark; remove them from the results and drop the column"
        raise ConfigError(f"{title}: {what}")
    if "harmful_ids" in names:
        raise ConfigError(f"{title}: harmful_ids are not read from frames on Spark; read the ground truth from a file")
    grade = sql.col("grade").cast("double") if "grade" in names else sql.lit(1.0)
    if not kinds.get("grade", "double").startswith(("decimal", *INTEGER_TYPES, "float", "double")):
        raise DataError(f"{title}: expected numbers in the 'grade' column, found {kinds['grade']}")
    if "qid" in names and "retrieval_gt" in names:
        inner = kinds["retrieval_gt"].removeprefix("array<array<").removesuffix(">>")
        if not kinds["retrieval_gt"].startswith("array<array<") or inner not in ("string", *INTEGER_TYPES):
            raise DataError(f"{title}: expected lists of lists of ids in retrieval_gt, found {kinds['retrieval_gt']}")

        def graded(name: Column) -> Column:
            return sql.struct(name.cast("string").alias("id"), sql.lit(1.0).alias("grade"))

        groups = sql.transform("retrieval_gt", lambda group: sql.transform(group, graded))
        rows = frame.select(ids(kinds["qid"], "qid", title), groups.alias("groups"))
        rows = rows.groupBy("qid").agg(sql.first("groups").alias("groups"), sql.count(sql.lit(1)).alias("n"))
        twice = sql.concat(sql.lit(f"{title}: query "), sql.col("qid"), sql.lit(": duplicate query; merge them"))
        one = sql.when(sql.col("n") == 1, sql.col("groups")).otherwise(sql.raise_error(twice))
        return rows.select("qid", one.alias("groups"))
    missing = [name for name in ("qid", "group", "doc_id") if name not in names]
    if missing:
        expected = "the columns qid and retrieval_gt, or qid, group and doc_id"
        raise DataError(f"{title}: expected {expected}; found {', '.join(names)}")
    absent = f"{title}: expected text in the 'group' column, found null"
    rows = frame.select(
        ids(kinds["qid"], "qid", title),
        sql.coalesce(sql.col("group").cast("string"), sql.raise_error(sql.lit(absent))).alias("group"),
        sql.struct(ids(kinds["doc_id"], "doc_id", title).alias("id"), grade.alias("grade")).alias("one"),
    )
    # Groups are sorted by name, as rows on a cluster have no order.
    grouped = rows.groupBy("qid", "group").agg(sql.sort_array(sql.collect_list("one")).alias("own"))
    alternatives = sql.sort_array(sql.collect_list(sql.struct("group", "own")))
    return grouped.groupBy("qid").agg(sql.transform(alternatives, lambda each: each["own"]).alias("groups"))


def session_of(master: str = "", config: Mapping[str, str] | None = None) -> SparkSession:
    """Return the current session or a new one, with workers that run the current Python."""
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
    """Turn a function of Arrow arrays into a function of columns, which returns a column, or `one` value per group."""
    import pyarrow as pa
    from pyspark.sql import functions

    _same_python()
    # Spark uses the annotations; PyArrow may be missing if modules are only imported.
    names = dict.fromkeys(inspect.signature(function).parameters, pa.Array)
    function.__annotations__ = {**names, "return": str if one else pa.Array}
    if not hasattr(functions, "arrow_udf"):
        raise ConfigError("this step needs PySpark 4.1 or later: pip install -U 'groupgt[spark]'")
    made: Any = functions
    column: Callable[..., Column] = made.arrow_udf(function, kind)
    return column


def _same_python() -> None:
    """Make local workers run the current Python, unless another one is configured."""
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
    """Convert a table to a frame in a session via Arrow."""
    import pyarrow as pa

    kinds = {"String": pa.string(), "Int64": pa.int64(), "Float64": pa.float64()}
    columns = {name: table[name].to_arrow().cast(kinds[str(kind)]) for name, kind in table.schema.items()}
    frame: DataFrame = session.createDataFrame(pa.table(columns))
    return frame


def with_ranks(rows: DataFrame, keys: DataFrame, tie: str, *, equals: bool = True) -> DataFrame:
    """Add ranks, keys, and the numbers of results with `higher` and `equal` scores for the same query.

    `hit` is true if a row is among the keys, otherwise null. Without `equals`, only ranks are computed.
    """
    from pyspark.sql import Window

    query = Window.partitionBy("qid")
    placed = rows.join(keys.withColumn("hit", sql.lit(True)), ["qid", "doc"], "left")
    placed = placed.withColumn("rank", sql.row_number().over(query.orderBy(*spark_order(tie))).cast("long"))
    if not equals:
        return placed
    by_score = query.orderBy(sql.col("score").desc())
    among = by_score.rangeBetween(Window.currentRow, Window.currentRow)
    higher = sql.rank().over(by_score).cast("long") - 1
    return placed.withColumns({"higher": higher, "equal": sql.count(sql.lit(1)).over(among)})
