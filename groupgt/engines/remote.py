"""Collects the rows of each bucket of queries with Spark, Ray Data or Dask, and reads files with Spark."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from groupgt.errors import ConfigError
from groupgt.formats import detect
from groupgt.formats.endings import name_of
from groupgt.formats.frames import collected, library_of
from groupgt.model.run import Remote, Run
from groupgt.runtime import sql

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

BUCKET = "_bucket"
Work = Callable[[bytes, "pa.Table"], bytes]


class Frame(Protocol):
    """A frame on a cluster. All tables contain only the chosen columns."""

    # How many buckets keep the cluster busy.
    parts: int
    # The module that pickles for this cluster.
    pickler: str

    def dumps(self, value: Any) -> bytes:
        """Pickle a value for workers, including functions that only the driver has."""
        return bytes(import_module(self.pickler).dumps(value))

    def first(self, columns: Sequence[str], limit: int) -> pa.Table:
        """Return up to this number of rows. The columns have their types even without rows."""

    def of_query(self, columns: Sequence[str], key: str, qid: str) -> pa.Table:
        """Return the rows in which the `key` column, as text, is `qid`."""

    def each(self, columns: Sequence[str], key: str, tasks: list[bytes], work: Work) -> Iterable[tuple[int, bytes]]:
        """Call `work(tasks[b], rows)` on workers for each bucket b that has rows, and return the results."""


def frame_of(value: Any) -> Frame:
    """Return the operations on a Spark, Ray Data or Dask frame."""
    return FRAMES[library_of(value)](value)


def bucket_of(qid: Any, count: int) -> int:
    """Return the bucket of a query id, using a checksum that Spark also provides."""
    return 0 if qid is None else zlib.crc32(str(qid).encode("utf-8", "surrogatepass")) % count


def with_buckets(rows: pa.Table, key: str, count: int) -> pa.Table:
    """Add the bucket of each row, looking up each distinct id once."""
    import pyarrow as pa

    ids = rows[key].combine_chunks().dictionary_encode()
    own = np.array([bucket_of(qid, count) for qid in ids.dictionary.to_pylist()] or [0], dtype=np.int64)
    return rows.append_column(BUCKET, pa.array(own[np.asarray(ids.indices.fill_null(0))]))


def by_bucket(rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
    """Yield each bucket with its rows in their original order."""
    own = np.asarray(rows[BUCKET])
    order = np.argsort(own, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(own[order])) + 1) if len(own) else ():
        yield int(own[places[0]]), rows.take(places).drop_columns([BUCKET])


class SparkFrame(Frame):
    """Ground truth and rows are cogrouped by bucket, in a single pass that shuffles the chosen columns."""

    pickler = "pyspark.cloudpickle"

    def __init__(self, value: Any) -> None:
        frame: DataFrame = value.to_spark() if type(value).__module__.startswith("pyspark.pandas") else value
        # Arrow has no texts of fixed length.
        texts = [name for name, kind in frame.dtypes if kind.startswith(("char", "varchar"))]
        self.frame = frame.withColumns({name: _column(name).cast("string") for name in texts}) if texts else frame
        self.parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)

    def first(self, columns: Sequence[str], limit: int) -> pa.Table:
        return self.frame.select(*map(_column, columns)).limit(limit).toArrow()

    def of_query(self, columns: Sequence[str], key: str, qid: str) -> pa.Table:
        return self.frame.filter(_column(key).cast("string") == qid).select(*map(_column, columns)).toArrow()

    def each(self, columns: Sequence[str], key: str, tasks: list[bytes], work: Work) -> Iterable[tuple[int, bytes]]:
        import pyarrow as pa

        def found(task: pa.Table, rows: pa.Table) -> pa.Table:
            rows = rows.drop_columns([BUCKET]).rename_columns(names)
            data = work(task["task"][0].as_py(), rows)
            return pa.table({BUCKET: task[BUCKET], "found": pa.array([data], pa.binary())})

        _same_python()
        names = list(columns)
        numbers = pa.array(range(len(tasks)), pa.int64())
        table = pa.table({BUCKET: numbers, "task": pa.array(tasks, pa.binary())})
        sent = self.frame.sparkSession.createDataFrame(table)
        code = sql.crc32(_column(key).cast("string").cast("binary"))
        bucket = sql.coalesce(sql.pmod(code, sql.lit(len(tasks))), sql.lit(0)).cast("long")
        # Spark itself does not find columns with a dot in their name when it brings frames together.
        own = (_column(name).alias(f"c{number}") for number, name in enumerate(columns))
        rows = self.frame.select(*own, bucket.alias(BUCKET))
        together = sent.groupBy(BUCKET).cogroup(rows.groupBy(BUCKET))
        back = together.applyInArrow(found, f"{BUCKET} long, found binary").toArrow()
        return zip(back[BUCKET].to_pylist(), back["found"].to_pylist())


def _column(name: str) -> Column:
    return sql.col(f"`{name}`")


class RayFrame(Frame):
    """Ground truth is in the object store, and rows are grouped by bucket."""

    pickler = "ray.cloudpickle"

    def __init__(self, value: Any) -> None:
        import ray

        self.frame = value
        self.parts = 2 * int(ray.cluster_resources().get("CPU", 1))

    def first(self, columns: Sequence[str], limit: int) -> pa.Table:
        import pyarrow as pa

        schema = self.frame.schema()
        if not limit and schema is not None and isinstance(schema.base_schema, pa.Schema):
            return schema.base_schema.empty_table().select(list(columns))
        # Without rows, frames of pandas have no types.
        return collected(self.frame.select_columns(list(columns)).limit(max(limit, 1))).slice(0, limit)

    def of_query(self, columns: Sequence[str], key: str, qid: str) -> pa.Table:
        def kept(rows: pa.Table) -> pa.Table:
            import pyarrow as pa
            import pyarrow.compute as pc

            return rows.filter(pc.equal(rows[key].cast(pa.string()), qid))

        rows = self.frame.select_columns(list(columns)).map_batches(kept, batch_format="pyarrow")
        return collected(rows)

    def each(self, columns: Sequence[str], key: str, tasks: list[bytes], work: Work) -> Iterable[tuple[int, bytes]]:
        import pyarrow as pa
        import ray

        count, sent = len(tasks), [ray.put(task) for task in tasks]
        shared = ray.put(work)

        def found(rows: pa.Table) -> pa.Table:
            bucket = rows[BUCKET][0].as_py()
            data = ray.get(shared)(ray.get(sent[bucket]), rows.drop_columns([BUCKET]))
            return pa.table({BUCKET: [bucket], "found": pa.array([data], pa.binary())})

        rows = self.frame.select_columns(list(columns))
        rows = rows.map_batches(with_buckets, fn_args=[key, count], batch_format="pyarrow")
        groups = rows.groupby(BUCKET, num_partitions=min(self.parts, count))
        for row in groups.map_groups(found, batch_format="pyarrow").iter_rows():
            yield row[BUCKET], row["found"]


class DaskFrame(Frame):
    """Rows are shuffled by bucket. Each partition has a few buckets."""

    pickler = "cloudpickle"

    def __init__(self, value: Any) -> None:
        self.frame, self.parts = value, value.npartitions

    def first(self, columns: Sequence[str], limit: int) -> pa.Table:
        # Without rows, columns of objects have no type.
        return _arrow(self.frame[list(columns)].head(max(limit, 1), npartitions=-1)).slice(0, limit)

    def of_query(self, columns: Sequence[str], key: str, qid: str) -> pa.Table:
        return _arrow(self.frame[self.frame[key].astype(str) == qid][list(columns)].compute())

    def each(self, columns: Sequence[str], key: str, tasks: list[bytes], work: Work) -> Iterable[tuple[int, bytes]]:
        import dask
        import pandas as pd

        count = len(tasks)

        def bucketed(part: pd.DataFrame) -> pd.DataFrame:
            return part.assign(**{BUCKET: [bucket_of(qid, count) for qid in part[key]]})

        def found(part: pd.DataFrame, sent: list[bytes]) -> pd.DataFrame:
            rows = [(bucket, work(sent[bucket], rows)) for bucket, rows in by_bucket(_arrow(part))]
            return pd.DataFrame(rows, columns=[BUCKET, "found"], dtype=object)

        chosen = self.frame[list(columns)]
        meta = chosen._meta.assign(**{BUCKET: np.zeros(0, dtype=np.int64)})
        rows = chosen.map_partitions(bucketed, meta=meta).shuffle(BUCKET)
        kinds = pd.DataFrame({BUCKET: [], "found": []}, dtype=object)
        with dask.config.set({"dataframe.convert-string": False}):
            back = rows.map_partitions(found, dask.delayed(tasks), meta=kinds).compute()
        return zip(back[BUCKET].tolist(), back["found"].tolist())


def _arrow(part: pd.DataFrame) -> pa.Table:
    import pyarrow as pa

    return pa.Table.from_pandas(part, preserve_index=False)


FRAMES: dict[str, Callable[[Any], Frame]] = {"pyspark": SparkFrame, "ray": RayFrame, "dask": DaskFrame}


def run_of_files(session: SparkSession, path: Any, format: str | None = None) -> Run:
    """Return a run that Spark reads from parquet or JSON Lines, or raise `ConfigError` for other formats."""
    paths, chosen, title = detect.located(path, format)
    if chosen not in ("parquet", "jsonl"):
        what = f"the spark engine reads parquet and JSON Lines, but this file is {chosen}"
        raise ConfigError(f"{title}: {what}; write it as parquet, or use another engine")
    frame = session.read.parquet(*paths) if chosen == "parquet" else session.read.json(paths)
    return Run(Remote(frame), name=name_of(title), source=title)


def session_of(master: str = "", config: Mapping[str, str] | None = None) -> SparkSession:
    """Return the current session or a new one, with workers that run the current Python."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        way = "pip install 'groupgt[spark]', and Java 17 or later"
        raise ConfigError(f"the spark engine needs PySpark: {way}") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("groupgt")
    if master:
        builder = builder.master(master)
    for name, value in (config or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _same_python() -> None:
    """Make local workers run the current Python, unless another one is configured."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        context = SparkSession.active().sparkContext
        is_chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().get("spark.pyspark.python")
    except (AttributeError, PySparkException):
        return  # a client of Spark Connect, whose server decides
    if not is_chosen and (context.master or "").startswith("local"):
        context.pythonExec = sys.executable
