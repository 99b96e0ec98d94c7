"""`use: dense` and `use: ann`: exact search is a double loop, approximate search finds nearly all of it."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import groupgt
from groupgt.options import options_from
from groupgt.retrievers import vectors
from groupgt.retrievers.base import Corpus, Queries, Ranking, Setting
from groupgt.retrievers.vectors import on_grid, products, unit

Floats = NDArray[Any]


def setting(documents: int, questions: int) -> Setting:
    corpus = Corpus([f"d{n}" for n in range(documents)], [""] * documents)
    return Setting(corpus, [f"q{n}" for n in range(questions)])


def asked(own: Setting) -> Queries:
    return Queries([""] * len(own.qids), own.qids)


def stored(folder: Path, documents: Floats, queries: Floats) -> dict[str, str]:
    np.save(folder / "d.npy", documents)
    np.save(folder / "q.npy", queries)
    return {"documents": str(folder / "d.npy"), "queries": str(folder / "q.npy")}


def random(rows: int, dimensions: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(size=(rows, dimensions)).astype(np.float32)


def search(folder: Path, documents: Floats, queries: Floats, k: int, **options: Any) -> list[Ranking]:
    own = setting(len(documents), len(queries))
    retriever = vectors.Dense(own, vectors.Options(**stored(folder, documents, queries), **options))
    return retriever.retrieve(asked(own), k)


def similarity(one: Floats, other: Floats, kind: str) -> float:
    left, right = one.tolist(), other.tolist()
    dot = math.fsum(a * b for a, b in zip(left, right))
    if kind == "dot":
        return dot
    lengths = math.sqrt(math.fsum(a * a for a in left)) * math.sqrt(math.fsum(b * b for b in right))
    return dot / lengths if lengths else 0.0


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_it_is_a_double_loop(tmp_path: Path, kind: str) -> None:
    documents, queries = random(70, 12), random(9, 12, seed=2)
    documents[30:40] = documents[10:20]  # ties
    documents[69] = 0
    found = search(tmp_path, documents, queries, 25, similarity=kind)
    for query, ranking in zip(queries, found, strict=True):
        scores = [similarity(query, document, kind) for document in documents]
        order = sorted(range(70), key=lambda place: (-scores[place], place))[:25]
        assert [name for name, _ in ranking] == [f"d{place}" for place in order]
        expected = [scores[place] for place in order]
        assert [score for _, score in ranking] == pytest.approx(expected, abs=1e-6, rel=1e-6)


def test_equal_documents_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    documents = np.array([[1.0, 0.0], [0.6, 0.8], [2.0, 0.0], [3.0, 4.0], [0.5, 0.0]])
    for k in range(1, 6):
        names = [name for name, _ in search(tmp_path, documents, np.array([[7.0, 0.0]]), k)[0]]
        assert names == ["d0", "d2", "d4", "d1", "d3"][:k]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_neighbours_in_a_batch_change_nothing(tmp_path: Path, kind: str) -> None:
    documents, queries = random(3001, 67) * 5, random(64, 67, seed=2)
    own = setting(len(documents), len(queries))
    files = stored(tmp_path, documents, queries)
    retriever = vectors.Dense(own, vectors.Options(**files, similarity=kind))
    together = retriever.retrieve(asked(own), 3001)
    for place in range(64):
        assert retriever.retrieve(asked(own).part(place, place + 1), 3001) == together[place : place + 1]
    assert retriever.retrieve(asked(own).part(3, 20), 7) == [ranking[:7] for ranking in together[3:20]]


def test_sums_of_products_are_exact() -> None:
    for queries, documents in (
        (unit(random(4, 50)), unit(random(30, 50, seed=3))),
        (on_grid(random(4, 50) * 1e6), on_grid(random(30, 50, seed=3) * 1e-9)),
    ):
        found = products(queries, documents)
        for row, query in zip(found.tolist(), queries.tolist()):
            exact = [sum(Fraction(a) * Fraction(b) for a, b in zip(query, other)) for other in documents.tolist()]
            assert row == [float(np.float32(float(each))) for each in exact]
            assert (documents @ np.array(query)).tolist() == exact
            assert (documents[:, ::-1] @ np.array(query[::-1])).tolist() == exact


def test_the_grid_is_finer_than_single_precision() -> None:
    rows = random(50, 384)
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    assert np.abs(on_grid(rows) - rows).max() <= lengths.max() * 2.0**-26
    assert np.linalg.norm(unit(rows), axis=1) == pytest.approx(np.ones(50), abs=2e-7)
    assert not on_grid(np.zeros((2, 3))).any()


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_a_question_of_zeros_has_no_results(tmp_path: Path, kind: str) -> None:
    queries = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = search(tmp_path, np.eye(2), queries, 5, similarity=kind)
    assert [len(ranking) for ranking in found] == [0, 2]


def test_questions_that_where_leaves_out_keep_their_rows(tmp_path: Path) -> None:
    own = setting(3, 3)
    retriever = vectors.Dense(own, vectors.Options(**stored(tmp_path, np.eye(3), np.eye(3))))
    found = retriever.retrieve(Queries(["", ""], ["q2", "q0"]), 1)
    assert found == [[("d2", 1.0)], [("d0", 1.0)]]


# ---- parquet -----------------------------------------------------------------------------------------------------


def parquet(path: Path, key: str, names: list[Any], rows: Any, column: str = "vector", kind: Any = None) -> str:
    pl.DataFrame({key: names, column: pl.Series(rows, dtype=kind)}, strict=False).write_parquet(path)
    return str(path)


@pytest.mark.parametrize("kind", [pl.List(pl.Float32), pl.Array(pl.Float64, 2), pl.List(pl.Int64)])
def test_parquet_rows_in_any_order_and_more_of_them(tmp_path: Path, kind: Any) -> None:
    rows = [[3, 4], [9, 9], [1, 0], [0, 1]]
    documents = parquet(tmp_path / "d.parquet", "doc_id", ["d2", "more", "d0", "d1"], rows, kind=kind)
    queries = parquet(tmp_path / "q.parquet", "qid", ["q1", "q0"], [[0, 2], [5, 0]], "embedding", kind)
    own = setting(3, 2)
    found = vectors.Dense(own, vectors.Options(documents=documents, queries=queries)).retrieve(asked(own), 2)
    tenths = [float(np.float32(each)) for each in (0.8, 0.6)]
    assert found == [[("d0", 1.0), ("d2", tenths[1])], [("d1", 1.0), ("d2", tenths[0])]]


def test_numbers_are_ids_too(tmp_path: Path) -> None:
    documents = parquet(tmp_path / "d.parquet", "_id", [8, 7], [[1.0], [2.0]])
    own = Setting(Corpus(["7", "8"], ["", ""]), ["q0"])
    np.save(tmp_path / "q.npy", [[1.0]])
    options = vectors.Options(documents=documents, queries=str(tmp_path / "q.npy"), similarity="dot")
    assert vectors.Dense(own, options).retrieve(asked(own), 2) == [[("7", 2.0), ("8", 1.0)]]


# ---- faults ------------------------------------------------------------------------------------------------------


class Opens:
    """What a pickle would run."""

    def __reduce__(self) -> Any:
        return (pytest.fail, ("a pickle was read",))


BAD_NPY: list[tuple[Any, str]] = [
    (np.zeros(3), r"expected an array of shape \(rows, dimensions\), found shape \(3,\)"),
    (np.zeros((3, 2, 1)), r"found shape \(3, 2, 1\)"),
    (np.zeros((3, 0)), r"found shape \(3, 0\)"),
    (np.zeros((2, 2)), "expected 3 rows, one for each document in the corpus, found 2"),
    (np.zeros((3, 5)), r"q.npy: expected 5 dimensions, as in the documents, found 2"),
    (np.array([[1, 2], [np.nan, 1], [np.inf, 1]]), r"row 2 \('d1'\): expected finite numbers, found NaN or infinity"),
    (np.array([["a", "b"]] * 3), "expected an array of numbers, found <U1"),
    (np.ones((3, 2), dtype=bool), "expected an array of numbers, found bool"),
    (np.ones((3, 2), dtype=complex), "expected an array of numbers, found complex128"),
]


@pytest.mark.parametrize(("array", "words"), BAD_NPY)
def test_bad_arrays(tmp_path: Path, array: Floats, words: str) -> None:
    own = setting(3, 1)
    options = vectors.Options(**stored(tmp_path, array, np.ones((1, 2))))
    with pytest.raises((groupgt.DataError, groupgt.RetrieverError), match=words):
        vectors.Dense(own, options).retrieve(asked(own), 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "d.npy: expected a NumPy array"),
        (b"no array", "d.npy: expected a NumPy array"),
        (b"PK\x03\x04 no archive", "d.npy: expected a NumPy array"),
        (None, "d.npy: expected a NumPy array: .*No such file"),
    ],
)
def test_what_is_no_npy(tmp_path: Path, content: bytes | None, words: str) -> None:
    files = stored(tmp_path, np.eye(2), np.eye(2))
    (tmp_path / "d.npy").unlink()
    if content is not None:
        (tmp_path / "d.npy").write_bytes(content)
    with pytest.raises(groupgt.DataError, match=words) as error:
        vectors.Dense(setting(2, 2), vectors.Options(**files))
    assert "\n" not in str(error.value)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    files = stored(tmp_path, np.array([[Opens(), Opens()]], dtype=object), np.eye(2))
    with pytest.raises(groupgt.DataError, match="Object arrays cannot be loaded"):
        vectors.Dense(setting(1, 2), vectors.Options(**files))


def test_an_archive_is_no_array(tmp_path: Path) -> None:
    files = stored(tmp_path, np.eye(2), np.eye(2))
    with (tmp_path / "d.npy").open("wb") as file:
        np.savez(file, a=np.eye(2))
    with pytest.raises(groupgt.DataError, match="found an archive"):
        vectors.Dense(setting(2, 2), vectors.Options(**files))


def test_rows_of_questions_are_those_of_the_whole_ground_truth(tmp_path: Path) -> None:
    files = stored(tmp_path, np.eye(2), np.eye(2))
    with pytest.raises(groupgt.DataError, match="expected 3 rows, one for each query in the ground truth"):
        vectors.Dense(setting(2, 3), vectors.Options(**files))


BAD_PARQUET: list[tuple[str, list[Any], Any, str, Any, str]] = [
    ("doc_id", ["d0", "x"], [[1.0], [2.0]], "vector", None, "no vectors for d1"),
    ("doc_id", ["d0", "d1", "d0"], [[1.0], [2.0], [3.0]], "vector", None, "several vectors for d0"),
    ("doc_id", ["d0", "d1"], [[1.0], [2.0, 3.0]], "vector", None, "vectors of the same length in the vector column"),
    ("doc_id", ["d0", "d1"], [[1.0], None], "vector", None, "vectors of the same length"),
    ("doc_id", ["d0", "d1"], [[1.0], [None]], "vector", None, r"row 2 \('d1'\): expected finite numbers"),
    ("doc_id", ["d0", "d1"], [[], []], "vector", pl.List(pl.Float64), r"found shape \(2, 0\)"),
    (
        "doc_id",
        ["d0", "d1"],
        ["a", "b"],
        "vector",
        None,
        "expected lists of numbers in the vector column, found String",
    ),
    ("doc_id", ["d0", "d1"], [["a"], ["b"]], "vector", None, "expected lists of numbers in the vector column, found"),
    (
        "doc_id",
        ["d0", "d1"],
        [[1.0], [2.0]],
        "values",
        None,
        "expected the columns doc_id and vector, found doc_id, va",
    ),
    (
        "name",
        ["d0", "d1"],
        [[1.0], [2.0]],
        "vector",
        None,
        "expected the columns doc_id and vector, found name, vector",
    ),
]


@pytest.mark.parametrize(("key", "names", "rows", "column", "kind", "words"), BAD_PARQUET)
def test_bad_parquet(tmp_path: Path, key: str, names: list[Any], rows: Any, column: str, kind: Any, words: str) -> None:
    documents = parquet(tmp_path / "d.parquet", key, names, rows, column, kind)
    queries = parquet(tmp_path / "q.parquet", "qid", ["q0"], [[1.0]])
    with pytest.raises(groupgt.DataError, match=words) as error:
        vectors.Dense(setting(2, 1), vectors.Options(documents=documents, queries=queries))
    assert str(error.value).startswith(documents)


def test_a_repeated_row_that_nobody_needs_is_no_fault(tmp_path: Path) -> None:
    documents = parquet(tmp_path / "d.parquet", "doc_id", ["d0", "x", "x"], [[1.0], [2.0], [3.0]])
    queries = parquet(tmp_path / "q.parquet", "qid", ["q0"], [[1.0]])
    own = setting(1, 1)
    assert vectors.Dense(own, vectors.Options(documents=documents, queries=queries)).retrieve(asked(own), 5)[0]


def test_what_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "d.parquet").write_bytes(b"no parquet")
    files = stored(tmp_path, np.eye(2), np.eye(2)) | {"documents": str(tmp_path / "d.parquet")}
    with pytest.raises(groupgt.DataError, match=r"d\.parquet: expected a parquet file") as error:
        vectors.Dense(setting(2, 2), vectors.Options(**files))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"documents": "d.txt", "queries": "q.npy"}, r"documents: expected a file that ends in .npy or .parquet"),
        ({"documents": "d.npy", "queries": "q.csv"}, r"queries: expected a file that ends in .npy or .parquet"),
        ({"documents": "d.npy"}, r"queries: expected a file of vectors \(or a model\), found neither"),
        ({"queries": "d.npy"}, "documents: expected a file of vectors"),
        ({"documents": "d.npy", "queries": "q.npy", "similarity": "cos"}, "expected cosine or dot, found 'cos'"),
    ],
)
def test_options_are_checked(options: dict[str, str], words: str) -> None:
    with pytest.raises(groupgt.ConfigError, match=words):
        options_from(vectors.Options, options)


def test_vectors_of_a_file_answer_its_questions_alone(tmp_path: Path) -> None:
    own = setting(2, 2)
    retriever = vectors.Dense(own, vectors.Options(**stored(tmp_path, np.eye(2), np.eye(2))))
    with pytest.raises(groupgt.RetrieverError, match="covers only its own queries"):
        retriever.retrieve(["any text"], 1)


# ---- approximate search ------------------------------------------------------------------------------------------


@pytest.fixture
def usearch() -> None:
    pytest.importorskip("usearch", reason="the extra groupgt[ann] is not installed")


def approximate(folder: Path, documents: Floats, queries: Floats, k: int, **options: Any) -> list[Ranking]:
    own = setting(len(documents), len(queries))
    retriever = vectors.Ann(own, vectors.AnnOptions(**stored(folder, documents, queries), **options))
    return retriever.retrieve(asked(own), k)


@pytest.mark.usefixtures("usearch")
@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_approximate_search_finds_nearly_all_with_exact_scores(tmp_path: Path, kind: str) -> None:
    documents, queries = random(2000, 16), random(50, 16, seed=2)
    exact = search(tmp_path, documents, queries, 2000, similarity=kind)
    near = approximate(tmp_path, documents, queries, 20, similarity=kind, connectivity=64)
    hits = sum(len({name for name, _ in a} & {name for name, _ in b[:20]}) for a, b in zip(near, exact, strict=True))
    assert hits >= 0.95 * 20 * 50
    for ranking, whole in zip(near, exact, strict=True):
        found = {name for name, _ in ranking}
        assert list(ranking) == [pair for pair in whole if pair[0] in found]


@pytest.mark.usefixtures("usearch")
def test_two_graphs_answer_alike(tmp_path: Path) -> None:
    documents, queries = random(1500, 24), random(30, 24, seed=2)
    graph = {"connectivity": 4}
    one = approximate(tmp_path, documents, queries, 10, **graph)
    assert one == approximate(tmp_path, documents, queries, 10, **graph)
    own = setting(1500, 30)
    retriever = vectors.Ann(own, vectors.AnnOptions(**stored(tmp_path, documents, queries), **graph))
    assert [retriever.retrieve(asked(own).part(n, n + 1), 10)[0] for n in range(30)] == one


@pytest.mark.usefixtures("usearch")
def test_equal_documents_of_a_graph_come_in_the_order_of_the_corpus(tmp_path: Path) -> None:
    documents = np.tile(np.array([[1.0, 0.0], [0.6, 0.8]]), (6, 1))
    names = [name for name, _ in approximate(tmp_path, documents, np.array([[7.0, 0.0]]), 12)[0]]
    assert names == [f"d{number}" for number in (*range(0, 12, 2), *range(1, 12, 2))]


@pytest.mark.usefixtures("usearch")
def test_more_than_there_is_and_questions_of_zeros(tmp_path: Path) -> None:
    queries = np.array([[1.0, 0.2, 0.1], [0.0, 0.0, 0.0]])
    found = approximate(tmp_path, np.eye(3), queries, 50)
    assert [[name for name, _ in ranking] for ranking in found] == [["d0", "d1", "d2"], []]


def test_options_of_the_graph_are_checked() -> None:
    with pytest.raises(groupgt.ConfigError, match="connectivity: expected a whole number from 1 to 100,000, found 0"):
        options_from(vectors.AnnOptions, {"documents": "d.npy", "queries": "q.npy", "connectivity": 0})


def test_a_row_of_zeros_has_no_likeness() -> None:
    documents = unit(np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))
    assert products(unit(np.array([[2.0, 0.0]])), documents).tolist() == [[1.0, 0.0, 0.0]]
