"""Vector search in PostgreSQL with pgvector, using psycopg."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from groupgt.errors import RetrieverError
from groupgt.formats.validity import first_line
from groupgt.options import Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin, Seconds
from groupgt.retrievers.vectors import MODEL_LIBRARIES, QueryOptions, QueryVectors

# The operator of each distance, and the number it is subtracted from to get a score (higher is better).
DISTANCES = {"cosine": ("<=>", 1.0), "l2": ("<->", 0.0), "inner_product": ("<#>", 0.0)}
EXACT = (
    "SELECT {id}::text, {vector} {operator} %(vector)s::vector AS distance FROM {table} "
    'WHERE {vector} IS NOT NULL ORDER BY distance, {id}::text COLLATE "C" LIMIT %(k)s'
)
# An index only supports ordering by the distance itself.
INDEXED = (
    "SELECT * FROM (SELECT {id}::text AS id, {vector} {operator} %(vector)s::vector AS distance FROM {table} "
    "WHERE {vector} IS NOT NULL ORDER BY {vector} {operator} %(vector)s::vector LIMIT %(k)s) AS nearest "
    'ORDER BY distance, id COLLATE "C"'
)


@dataclass(frozen=True)
class Options(QueryOptions):
    """Options for `use: pgvector`.

    Rows at the same distance are ordered by id. A zero vector has no cosine similarity, so groupgt never returns it,
    and a zero query has no results. The table is queried on every run. Set its `version` next to `use` to cache
    results.
    """

    dsn: Annotated[
        str,
        Doc(
            "Connection string, ideally ${env:DATABASE_URL}. It may set index options (options=-c hnsw.ef_search=100)."
        ),
    ] = ""
    table: Annotated[str, Doc("Table to search.")] = ""
    id_column: Annotated[str, Doc("Column of ids.")] = "id"
    vector_column: Annotated[str, Doc("Column of vectors.")] = "embedding"
    distance: Annotated[
        Literal["cosine", "l2", "inner_product"],
        Doc("Distance measure: cosine (score: 1 − distance), l2 or inner_product (score: −distance)."),
    ] = "cosine"
    exact: Annotated[bool, Doc("Search without an index. If false, use the table's index.")] = True
    timeout: Annotated[Seconds, Doc("Maximum duration of a statement, in seconds.")] = 30.0

    def asks_singly(self) -> bool | None:
        return True

    def least_score(self) -> float | None:
        return -1.0 if self.distance == "cosine" else None

    def clashes(self) -> Iterator[Clash]:
        """Yield errors for invalid query vector options, and for missing connection or table options."""
        yield from super().clashes()
        for option in ("dsn", "table", "id_column", "vector_column"):
            if not getattr(self, option):
                yield Clash(option, "expected text, found nothing")


class PgVector:
    """A retriever that finds the rows of a database table nearest to each query. Database errors are raised."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        import psycopg
        from psycopg import sql

        self.options = options
        self.spent: list[float] = []
        self.vectors = QueryVectors(setting, options)
        operator, self.most = DISTANCES[options.distance]

        def name(*parts: str) -> Any:
            return sql.Identifier(*(part.replace("%", "%%") for part in parts))

        self.statement = sql.SQL(EXACT if options.exact else INDEXED).format(
            id=name(options.id_column),
            vector=name(options.vector_column),
            operator=sql.SQL(operator),
            table=name(*options.table.split(".")),
        )
        _check_dsn(options.dsn)
        try:
            patience = max(2, round(options.timeout))
            self.connection = psycopg.connect(options.dsn, autocommit=True, connect_timeout=patience)
            weakref.finalize(self, self.connection.close)
            self.connection.execute(f"SET statement_timeout = {max(1, round(options.timeout * 1000))}")
            if options.exact:
                self.connection.execute("SET enable_indexscan = off")
        except (psycopg.Error, UnicodeError) as error:
            raise RetrieverError(f"the database does not respond: {first_line(error)}") from None

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """Return the k nearest rows for each query."""
        self.spent, rankings = [], []
        start = time.perf_counter()
        vectors = self.vectors.of(queries)
        share = (time.perf_counter() - start) / max(1, len(queries))
        for vector in vectors:
            start = time.perf_counter()
            rankings.append(self._nearest(vector.tolist(), k))
            self.spent.append(1000 * (time.perf_counter() - start + share))
        return rankings

    def _nearest(self, vector: list[float], k: int) -> base.Ranking:
        import psycopg

        text = "[" + ",".join(map(repr, vector)) + "]"
        try:
            rows: list[Any] = self.connection.execute(self.statement, {"vector": text, "k": k}).fetchall()
        except psycopg.Error as error:
            hint = " (CREATE EXTENSION vector)" if str(error).startswith('type "vector"') else ""
            text = f"the table {self.options.table!r} cannot be searched: {first_line(error)}{hint}"
            raise RetrieverError(text) from None
        # The cosine of a zero vector is NaN, which PostgreSQL sorts last.
        return [(name, self.most - distance) for name, distance in rows if not math.isnan(distance)]


def _check_dsn(dsn: str) -> None:
    """Reject an invalid connection string, because libpq's error messages could reveal parts of a password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        host = str(conninfo_to_dict(dsn).get("host", ""))
    except psycopg.Error:
        host = "@"
    if "@" in host:
        form = "postgresql://user:password@host/database, with special characters percent-encoded"
        raise RetrieverError(f"dsn: expected {form}, or key=value pairs")


PLUGIN = RetrieverPlugin(
    Options,
    PgVector,
    summary="A table in PostgreSQL, searched with pgvector.",
    libraries=MODEL_LIBRARIES,
    corpus=False,
    modules={"psycopg": "pgvector"},
    live=True,
)
