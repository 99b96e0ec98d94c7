"""`use: pgvector`, against a PostgreSQL of its own: exact search is NumPy's; what the database refuses is one line."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import groupgt
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers import vectors
from groupgt.retrievers.base import Corpus, Queries, Ranking, Setting
from groupgt.retrievers.pgvector import Options, PgVector
from tests.retrievers.small import small

psycopg = pytest.importorskip("psycopg", reason="the extra groupgt[pgvector] is not installed")

Floats = NDArray[Any]
ROWS, WIDTH = 200, 8
PASSWORD = "r1ght-one"


def random(rows: int, seed: int, width: int = WIDTH) -> Floats:
    return np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)


def text(vector: Floats) -> str:
    return "[" + ",".join(map(str, vector.tolist())) + "]"


def documents() -> Floats:
    found = random(ROWS, 1)
    found[100:110] = found[50:60]  # ties
    return found


IDS = [f"d{number:03}" for number in range(ROWS)]


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip(
            "pgserver", reason="pgserver, whose wheels bring PostgreSQL to Python up to 3.12, is not installed"
        )
    folder = tmp_path_factory.mktemp("pg")
    server = pgserver.get_server(folder, cleanup_mode="stop")
    uri: str = server.get_uri()
    with psycopg.connect(uri, autocommit=True) as connection:
        fill(connection)
        access = folder / "pg_hba.conf"
        access.write_text(f"local all guarded scram-sha-256\n{access.read_text()}")
        connection.execute("SELECT pg_reload_conf()")
    yield uri
    server.cleanup()


def fill(connection: Any) -> None:
    run = connection.execute
    run("CREATE DATABASE bare")
    run("CREATE EXTENSION vector")
    run(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
    run("CREATE TABLE items (id text, embedding vector(8))")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO items VALUES (%s, %s)", list(zip(IDS, map(text, documents()))))
    run("INSERT INTO items VALUES ('unknown', NULL)")
    run('CREATE SCHEMA "Other ""place"""')
    run('CREATE TABLE "Other ""place"""."od""d %s ta;ble" ("the ""id"" %" int, "vec\'tor 100%%d" vector(2))')
    run('INSERT INTO "Other ""place"""."od""d %s ta;ble" VALUES (7, \'[1,0]\'), (8, \'[0,1]\')')
    run("CREATE TABLE twins (id text COLLATE unicode, embedding vector(2))")
    run("INSERT INTO twins VALUES ('b', '[1,0]'), ('é', '[2,0]'), ('B', '[3,0]'), ('a', '[1,0]'), ('zero', '[0,0]')")
    run("CREATE TABLE small (id text, embedding vector(3))")
    run("INSERT INTO small VALUES ('d3', '[0,0,1]'), ('d1', '[1,0,0]'), ('d2', '[0,1,0]')")
    run("CREATE TABLE many (id int, embedding vector(3))")
    run("INSERT INTO many SELECT n, ARRAY[sin(n), cos(n), sin(n * 7)]::vector FROM generate_series(1, 3000) n")
    run("CREATE INDEX ON many USING hnsw (embedding vector_cosine_ops) WITH (m = 4, ef_construction = 8)")
    run("ANALYZE many")
    run("CREATE VIEW slow AS SELECT id, embedding FROM twins, pg_sleep(20)")


def ask(dsn: str, folder: Path, queries: Floats, k: int, **options: Any) -> list[Ranking]:
    np.save(folder / "q.npy", queries)
    qids = [f"q{number}" for number in range(len(queries))]
    given = {"table": "items", "dsn": dsn, "queries": str(folder / "q.npy"), **options}
    retriever = PgVector(Setting(Corpus([], []), qids), Options(**given))
    return retriever.retrieve(Queries([""] * len(qids), qids), k)


def fault(dsn: str, folder: Path, queries: Floats | None = None, **options: Any) -> str:
    with pytest.raises(groupgt.RetrieverError) as error:
        ask(dsn, folder, random(1, 2) if queries is None else queries, 5, **options)
    words = str(error.value)
    assert "\n" not in words
    assert PASSWORD not in words
    return words


# ---- answers -----------------------------------------------------------------------------------------------------


def near(found: list[Ranking], expected: list[Ranking]) -> None:
    """Equal ids and scores; ids may change places where scores are equal but for rounding."""
    for one, other in zip(found, expected, strict=True):
        assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-5)
        for (name, score), (same, _) in zip(one, other, strict=True):
            assert name == same or min(abs(score - own) for at, own in other if at == name) < 1e-6


@pytest.mark.parametrize(("distance", "similarity"), [("cosine", "cosine"), ("inner_product", "dot")])
def test_exact_search_is_dense(dsn: str, tmp_path: Path, distance: str, similarity: str) -> None:
    queries = random(10, 2)
    np.save(tmp_path / "d.npy", documents())
    np.save(tmp_path / "q.npy", queries)
    qids = [f"q{number}" for number in range(10)]
    files = {"documents": str(tmp_path / "d.npy"), "queries": str(tmp_path / "q.npy")}
    exact = vectors.Dense(Setting(Corpus(IDS, [""] * ROWS), qids), vectors.Options(**files, similarity=similarity))
    for k in (1, 30, 500):
        near(ask(dsn, tmp_path, queries, k, distance=distance), exact.retrieve(Queries([""] * 10, qids), k))


def test_exact_search_by_l2(dsn: str, tmp_path: Path) -> None:
    queries = random(5, 2)
    expected = []
    for query in queries.tolist():
        scored = [(name, -math.dist(query, document)) for name, document in zip(IDS, documents().tolist())]
        expected.append(sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:40])
    near(ask(dsn, tmp_path, queries, 40, distance="l2"), expected)


def test_equal_distances_go_by_id_and_zeros_are_left_out(dsn: str, tmp_path: Path) -> None:
    queries = np.array([[5.0, 0.0], [0.0, 0.0]])
    for k in (1, 2, 3, 4, 9):
        ranking, nothing = ask(dsn, tmp_path, queries, k, table="twins")
        assert ranking == [("B", 1.0), ("a", 1.0), ("b", 1.0), ("é", 1.0)][:k]
        assert nothing == []
    found = ask(dsn, tmp_path, queries, 9, table="twins", distance="l2")[1]
    assert found == [("zero", 0.0), ("a", -1.0), ("b", -1.0), ("é", -2.0), ("B", -3.0)]


def test_names_of_every_kind(dsn: str, tmp_path: Path) -> None:
    names = {"table": 'Other "place".od"d %s ta;ble', "id_column": 'the "id" %', "vector_column": "vec'tor 100%%d"}
    assert ask(dsn, tmp_path, np.array([[1.0, 0.0]]), 5, **names) == [[("7", 1.0), ("8", 0.0)]]


@pytest.mark.parametrize(("exact", "more", "most"), [(True, "", 100), (False, "", 40), (False, "200", 100)])
def test_only_without_exact_the_index_answers(dsn: str, tmp_path: Path, exact: bool, more: str, most: int) -> None:
    # an HNSW index finds at most forty, unless hnsw.ef_search says otherwise; its graph is random and may miss some
    where = f"{dsn}&options=-c%20hnsw.ef_search%3D{more}" if more else dsn
    ranking = ask(where, tmp_path, np.array([[0.5, 0.4, 0.3]]), 100, table="many", exact=exact)[0]
    assert len(ranking) == most if exact else 0 < len(ranking) <= most
    assert list(ranking) == sorted(ranking, key=lambda pair: (-pair[1], pair[0]))


def test_numbers_beyond_single_precision(dsn: str, tmp_path: Path) -> None:
    assert ask(dsn, tmp_path, np.array([[1.0, 1e-60]]), 1, table="twins") == [[("B", 1.0)]]


def test_a_whole_experiment_with_a_database(dsn: str, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", np.eye(3))
    options = f'dsn: "{dsn}", table: small, queries: q.npy'
    file = small(tmp_path, f"mine: {{use: pgvector, with: {{{options}}}}}")
    assert run_experiment(file).evaluations["set"]["mine"]["recall@1"] == 1


# ---- faults ------------------------------------------------------------------------------------------------------


def test_no_server(tmp_path: Path) -> None:
    words = fault(f"postgresql://me:{PASSWORD}@127.0.0.1:1/db", tmp_path)
    assert words.startswith("the database does not respond: connection failed: ")
    assert "refused" in words.lower()


def test_a_wrong_password(dsn: str, tmp_path: Path) -> None:
    wrong = dsn.replace("postgres:@", f"guarded:{PASSWORD}X@")
    assert "password authentication failed for user" in fault(wrong, tmp_path)
    assert "permission denied for table items" in fault(dsn.replace("postgres:@", f"guarded:{PASSWORD}@"), tmp_path)


@pytest.mark.parametrize(
    "dsn",
    [
        PASSWORD,
        f"host=h password=my {PASSWORD}",
        f"postgresql://u:x@{PASSWORD}@h/db",
        f"postgresql://u:{PASSWORD}%zz@h/db",
    ],
)
def test_a_dsn_that_cannot_be_read_is_not_shown(tmp_path: Path, dsn: str) -> None:
    assert fault(dsn, tmp_path).startswith("dsn: expected postgresql://user:password@host/database, ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"table": "nothing"}, 'relation "nothing" does not exist'),
        ({"table": "no.items"}, 'relation "no.items" does not exist'),
        ({"id_column": "name"}, 'column "name" does not exist'),
        ({"vector_column": "vector"}, 'column "vector" does not exist'),
        ({"table": "twins"}, "different vector dimensions 2 and 8"),
        ({"vector_column": "id"}, "operator does not exist: text <=> vector"),
        ({"table": "slow", "timeout": 0.1}, "canceling statement due to statement timeout"),
    ],
)
def test_what_the_database_refuses(dsn: str, tmp_path: Path, options: dict[str, Any], words: str) -> None:
    table = options.get("table", "items")
    assert fault(dsn, tmp_path, **options) == f"the table {table!r} cannot be searched: {words}"


def test_without_the_extension(dsn: str, tmp_path: Path) -> None:
    bare = dsn.replace("/postgres?", "/bare?")
    with psycopg.connect(bare) as connection:
        connection.execute("CREATE TABLE items (id text, embedding real[])")
    words = fault(bare, tmp_path)
    assert words == "the table 'items' cannot be searched: type \"vector\" does not exist (CREATE EXTENSION vector)"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dsn": ""}, "dsn: expected text, found nothing"),
        ({"table": ""}, "table: expected text, found nothing"),
        ({"queries": ""}, "queries: expected a file of vectors"),
        ({"distance": "cosin"}, "did you mean 'cosine'"),
        ({"timeout": 0.0}, "timeout: expected seconds above 0"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(Options, {"dsn": "x", "table": "t", "queries": "q.npy", **options})
