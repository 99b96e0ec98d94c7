"""Where lengths come from, and what is said where they are not what they should be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt
from groupgt.engines.carriers import all_rankings
from groupgt.formats import source
from groupgt.formats.corpus import read_corpus, read_lengths
from groupgt.formats.tokenizers import check_tokenizer, tokenizer_named
from groupgt.model.policy import Policy

TRUTH = {"q": [["a"], ["b"]]}
LISTS = {"q": ["a", "b"]}


def recall(run: Any, budget: str, lengths: Any = None) -> float:
    """Half for each of a and b that fits."""
    return groupgt.evaluate(TRUTH, run, [f"recall@{budget}"], lengths=lengths)[f"recall@{budget}"]


def recalls(run: Any, budgets: Sequence[int], unit: str, lengths: Any = None) -> list[float]:
    """The same under several budgets."""
    asked = [f"recall@{budget}{unit}" for budget in budgets]
    return list(groupgt.evaluate(TRUTH, run, asked, lengths=lengths).means.values())


def whole(run: Any, lengths: Any = None) -> float:
    """The recall where no budget is asked."""
    return groupgt.evaluate(TRUTH, run, ["recall"], lengths=lengths)["recall"]


def words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def lines(path: Path, *rows: Any) -> Path:
    return written(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


# ---- in Python --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lengths",
    [
        {"tokens": {"a": 2, "b": 1}},
        {"tokens": {"a": np.int64(2), "b": np.uint8(1)}, "chars": {}},
        groupgt.Lengths({"tokens": {"a": 2, "b": 1}}),
        groupgt.Lengths(texts={"a": "to be", "b": "or"}, count=words),
        groupgt.Lengths(texts={"a": "to be", "b": "or"}, count=lambda texts: np.array(words(texts))),
        groupgt.Lengths(texts={"a": "to be", "b": "or"}, count=tokenizer_named("whitespace")),
    ],
)
def test_tokens_in_python(lengths: Any) -> None:
    # 2, and 2 + 1 = 3.
    assert recalls(LISTS, (1, 2, 3), "tokens", lengths) == [0, 0.5, 1]


def test_chars_are_code_points() -> None:
    # é is one, 𝛼 is one beyond the first plane, e with a combining accent are two: 3, and 3 + 2 = 5.
    texts = {"a": "é𝛼b", "b": "e\u0301"}
    for lengths in (texts, groupgt.Lengths(texts=texts), {"chars": {"a": 3, "b": 2}}):
        assert recalls(LISTS, (2, 3, 4, 5), "chars", lengths) == [0, 0.5, 0.5, 1]


def test_integer_ids_are_their_decimal_text() -> None:
    found = groupgt.evaluate({1: [[7]]}, {1: [7]}, ["recall@3tokens"], lengths={"tokens": {7: 3}})
    assert found["recall@3tokens"] == 1
    assert groupgt.evaluate({1: [[7]]}, {1: [7]}, ["recall@3chars"], lengths={7: "abc"})["recall@3chars"] == 1


def test_texts_are_counted_once() -> None:
    counted: list[str] = []

    def count(texts: Sequence[str]) -> list[int]:
        counted.extend(texts)
        return words(texts)

    lengths = groupgt.Lengths(texts={"a": "x", "b": "y", "c": "z"}, count=count)
    run = {"q": ["a", "b", "a"], "p": ["b"]}
    for _ in range(2):
        groupgt.evaluate({**TRUTH, "p": [["b"]]}, run, ["recall@3tokens", "ndcg@1tokens"], lengths=lengths)
    assert sorted(counted) == ["x", "y"]  # and not z, which nobody retrieves


def test_what_python_says_goes_before_what_stands_with_results(tmp_path: Path) -> None:
    rows = {"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_tokens": [9, 9], "retrieved_contents": ["xxxx", "y"]}
    file = lines(tmp_path / "run.jsonl", rows)
    assert recall(file, "10tokens") == 0.5
    assert recall(file, "10tokens", {"tokens": {"a": 1, "b": 9}}) == 1
    assert recall(file, "4chars") == 0.5
    assert recall(file, "4chars", {"a": "x", "b": "y"}) == 1
    # What says nothing of a unit leaves it to the results.
    assert recall(file, "10tokens", {"chars": {"a": 1, "b": 1}}) == 0.5
    assert recall(file, "18tokens", {}) == 1


def test_a_tokenizer_that_is_named_goes_before_counts_that_come_with_results(tmp_path: Path) -> None:
    """As it goes before a column of tokens in a corpus: else it is named in vain and nothing says so."""
    row = {"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_contents": ["one two three", "one"]}
    count = groupgt.Lengths(count=words)
    assert recall(lines(tmp_path / "bare.jsonl", row), "3tokens", count) == 0.5
    assert recall(lines(tmp_path / "run.jsonl", {**row, "retrieved_tokens": [1, 1]}), "3tokens", count) == 0.5


@pytest.mark.parametrize(
    ("lengths", "named"),
    [
        ({"tokens": {"a": -5}}, "tokens of 'a'"),
        ({"tokens": {"a": 1.5}}, "tokens of 'a'"),
        ({"tokens": {"a": "3"}}, "tokens of 'a'"),
        ({"tokens": {"a": None}}, "tokens of 'a'"),
        ({"tokens": {"a": True}}, "tokens of 'a'"),
        ({"tokens": {"a": float("nan")}}, "tokens of 'a'"),
        ({"tokens": {"a": 10**13}}, "tokens of 'a'"),
        ({"words": {"a": 1}}, "words"),
        ({"tokens": [1, 2]}, "tokens"),
        ({"a": "text", "b": None}, "'b'"),
        ([1, 2], "lengths"),
        ("corpus.jsonl", "lengths"),
        (5, "lengths"),
    ],
    ids=str,
)
def test_lengths_that_are_none(lengths: Any, named: str) -> None:
    for run in (lambda: recall(LISTS, "3tokens", lengths), lambda: whole(LISTS, lengths)):
        with pytest.raises(groupgt.ConfigError, match=named):
            run()


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(groupgt.ConfigError) as caught:
        recall(LISTS, "3tokens", {"tokens": {"a": -5, "b": 1, "c": "x"}, "words": {}})
    assert caught.value.total == 3


@pytest.mark.parametrize(
    "given",
    [
        {"known": {"tokens": {"a": -5, "b": 1}}},
        {"known": {"tokens": {"a": 1.5, "b": 1}}},
        {"known": {"tokens": {"a": "7", "b": 1}}},
        {"known": {"tokens": {"a": "x", "b": 1}}},
        {"known": {"tokens": {"a": None, "b": 1}}},
        {"known": {"chars": {}}, "texts": {"a": 5, "b": "x"}, "count": words},
        {"texts": {"a": None, "b": "x"}, "count": words},
        {"count": 5},
    ],
    ids=["negative", "fractional", "digits", "text", "null", "number for text", "null for text", "no function"],
)
def test_the_class_checks_what_it_is_given(given: dict[str, Any]) -> None:
    with pytest.raises(groupgt.ConfigError):
        groupgt.Lengths(**given)


@pytest.mark.parametrize("count", [lambda texts: [1], lambda texts: [1] * 9, lambda texts: [1.0] * len(texts)])
def test_a_tokenizer_of_wrong_counts(count: Any, tmp_path: Path) -> None:
    file = lines(tmp_path / "run.jsonl", {"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_contents": ["x", "y"]})
    for run, lengths in (
        (LISTS, groupgt.Lengths(texts={"a": "x", "b": "y"}, count=count)),
        (file, groupgt.Lengths(count=count)),
    ):
        with pytest.raises(groupgt.ConfigError, match="tokenizer"):
            recall(run, "3tokens", lengths)
        assert whole(run, lengths) == 1


@pytest.mark.parametrize(
    "count",
    [lambda texts: 5, lambda texts: None, lambda texts: [-1] * len(texts), lambda texts: [None] * len(texts)],
    ids=["a number", "nothing", "negative", "nulls"],
)
def test_a_tokenizer_that_returns_no_counts(count: Any) -> None:
    with pytest.raises(groupgt.ConfigError, match="tokenizer"):
        recall(LISTS, "3tokens", groupgt.Lengths(texts={"a": "x", "b": "y"}, count=count))


def test_a_tokenizer_that_raises_is_told_as_such() -> None:
    def count(texts: Sequence[str]) -> list[int]:
        raise RuntimeError("the model is not loaded")

    with pytest.raises(groupgt.GroupgtError, match="the model is not loaded"):
        recall(LISTS, "3tokens", groupgt.Lengths(texts={"a": "x", "b": "y"}, count=count))


@pytest.mark.filterwarnings("ignore:.* not in the corpus")
@pytest.mark.parametrize("lengths", [{"tokens": {"a": 1}}, groupgt.Lengths(texts={"a": "x"}, count=words)])
def test_a_result_without_a_length(lengths: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path / "run.csv", "qid,doc_id,score\nq,a,2\nq,b,1\nother,c,1\n")
    for size in (source.SMALL, 0):
        monkeypatch.setattr(source, "SMALL", size)
        for run in (LISTS, file):
            with pytest.raises(groupgt.DataError, match="'b' in tokens") as caught:
                recall(run, "3tokens", lengths)
            # What no query of the ground truth retrieves needs no length.
            assert caught.value.total == 1
            assert whole(run, lengths) == 1


# ---- with results -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["tokens", "chars"])
def test_long_rows(unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"qid": ["q", "q"], "doc_id": ["b", "a"], "score": [1, 2], unit: [1, 2]})
    frame.write_csv(tmp_path / "run.csv")
    frame.write_csv(tmp_path / "run.tsv", separator="\t")
    frame.write_parquet(tmp_path / "run.parquet")
    frame.write_ndjson(tmp_path / "run.jsonl")
    for size in (source.SMALL, 0):
        monkeypatch.setattr(source, "SMALL", size)
        for run in (frame, *(tmp_path / f"run.{end}" for end in ("csv", "tsv", "parquet", "jsonl"))):
            # a stands first: 2, and 2 + 1 = 3.
            assert recalls(run, (1, 2, 3), unit) == [0, 0.5, 1]


INTEGERS = [pl.Int8, pl.UInt8, pl.Int16, pl.UInt16, pl.Int32, pl.UInt32, pl.Int64, pl.UInt64]


@pytest.mark.parametrize("kind", [*INTEGERS, pl.Float32, pl.Float64], ids=str)
def test_columns_of_every_numeric_type(kind: Any, tmp_path: Path) -> None:
    """UInt32 is what polars' own `len_chars` makes; pandas makes doubles where a row is null."""
    frame = pl.DataFrame({"qid": ["q", "q"], "doc_id": ["a", "b"], "score": [2, 1]})
    frame = frame.with_columns(tokens=pl.Series([100, 100], dtype=kind))
    frame.write_parquet(tmp_path / "run.parquet")
    # 100, and 200, which no Int8 holds.
    for run in (frame, tmp_path / "run.parquet"):
        assert recalls(run, (99, 100, 199, 200), "tokens") == [0, 0.5, 0.5, 1]


@pytest.mark.parametrize("kind", [*INTEGERS, pl.Float32, pl.Float64], ids=str)
def test_nested_lengths_of_every_numeric_type(kind: Any) -> None:
    frame = pl.DataFrame({"qid": ["q"], "retrieved_ids": [["a", "b"]]})
    frame = frame.with_columns(retrieved_tokens=pl.Series([[100, 100]], dtype=pl.List(kind)))
    assert recalls(frame, (99, 100, 199, 200), "tokens") == [0, 0.5, 0.5, 1]


@pytest.mark.parametrize("end", ["jsonl", "parquet"])
def test_nested_rows(end: str, tmp_path: Path) -> None:
    def saved(**columns: Any) -> Path:
        file = tmp_path / f"run.{end}"
        row = {"qid": "q", "retrieved_ids": ["a", "b"], **columns}
        if end == "jsonl":
            return lines(file, row)
        pl.DataFrame({name: [cell] for name, cell in row.items()}).write_parquet(file)
        return file

    assert recalls(saved(retrieved_tokens=[2, 1]), (1, 2, 3), "tokens") == [0, 0.5, 1]
    assert recalls(saved(retrieved_chars=[2, 1]), (1, 2, 3), "chars") == [0, 0.5, 1]
    contents = saved(retrieved_contents=["to be", "or"])
    # 5, and 5 + 2 = 7 characters; 2, and 2 + 1 = 3 words.
    assert recalls(contents, (4, 5, 7), "chars") == [0, 0.5, 1]
    count = groupgt.Lengths(count=words)
    assert recalls(contents, (1, 2, 3), "tokens", count) == [0, 0.5, 1]
    # Counts that stand there go before texts that would have to be measured.
    assert recall(saved(retrieved_contents=["to be", "or"], retrieved_chars=[1, 1]), "2chars") == 1


def test_node_output_without_qids(tmp_path: Path) -> None:
    """AutoRAG's: rows follow those of the ground truth."""
    file = tmp_path / "0.parquet"
    pl.DataFrame({"retrieved_ids": [["a", "b"]], "retrieved_contents": [["to be", "or"]]}).write_parquet(file)
    assert recalls(file, (4, 5, 7), "chars") == [0, 0.5, 1]


def test_results_that_carry_no_lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trec = written(tmp_path / "run.trec", "q Q0 a 1 2 t\nq Q0 b 2 1 t\n")
    csv = written(tmp_path / "run.csv", "qid,doc_id,score\nq,a,2\nq,b,1\n")
    contents = lines(tmp_path / "run.jsonl", {"qid": "q", "retrieved_ids": ["a"], "retrieved_contents": ["x"]})
    for size in (source.SMALL, 0):
        monkeypatch.setattr(source, "SMALL", size)
        for run in (trec, csv, contents):
            with pytest.raises(groupgt.DataError, match=run.name):
                recall(run, "3tokens")
    with pytest.raises(groupgt.DataError, match="corpus"):
        recall(LISTS, "3chars")


BAD = [-1, 1.5, "x", None, *(pytest.param(cell, marks=pytest.mark.property) for cell in ("", True, 10**13))]
WHOLE_TEXTS = ["2", " 2", "02"]
ODD_TEXTS = ["2.0", "+2", "2e0", "1_0", "-0", "²"]


def faulty(kind: str, folder: Path, cell: Any) -> Path | None:
    """Results whose second length is `cell`; None where the format cannot hold it."""
    frame = {"qid": ["q", "q"], "doc_id": ["a", "b"], "score": [2, 1]}
    if kind.startswith("csv"):
        text = "" if cell is None else str(cell)
        return written(folder / "run.csv", f"qid,doc_id,tokens,score\nq,a,1,2\nq,b,{text},1\n")
    if kind == "jsonl":
        rows = [{"qid": "q", "doc_id": "a", "score": 2, "tokens": 1}, {"qid": "q", "doc_id": "b", "score": 1}]
        return lines(folder / "run.jsonl", rows[0], {**rows[1], "tokens": cell})
    if kind == "nested jsonl":
        return lines(folder / "run.jsonl", {"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_tokens": [1, cell]})
    if isinstance(cell, (str, bool)):
        return None
    if kind == "parquet":
        pl.DataFrame({**frame, "tokens": pl.Series([1, cell], strict=False)}).write_parquet(folder / "run.parquet")
    else:
        nested = pl.DataFrame({"qid": ["q"], "retrieved_ids": [["a", "b"]]})
        nested = nested.with_columns(retrieved_tokens=pl.Series([1, cell], strict=False).implode())
        nested.write_parquet(folder / "run.parquet")
    return folder / "run.parquet"


@pytest.mark.parametrize("kind", ["csv", "csv large", "jsonl", "nested jsonl", "parquet", "nested parquet"])
@pytest.mark.parametrize("cell", BAD, ids=repr)
def test_a_length_that_is_none(kind: str, cell: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "large" in kind:
        monkeypatch.setattr(source, "SMALL", 0)
    file = faulty(kind, tmp_path, cell)
    if file is None:
        return
    with pytest.raises(groupgt.DataError, match=f"{file.name}.*'q'.*whole number"):
        recall(file, "3tokens")
    assert whole(file) == 1
    # Another unit, or lengths from elsewhere, do not look at it.
    assert recall(file, "3chars", {"a": "x", "b": "y"}) == 1
    assert recall(file, "3tokens", {"tokens": {"a": 1, "b": 1}}) == 1
    with pytest.raises(groupgt.DataError, match=file.name):
        recall(file, "3chars")


@pytest.mark.parametrize("cell", [*WHOLE_TEXTS, *ODD_TEXTS])
def test_small_and_large_csv_read_lengths_alike(cell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = faulty("csv", tmp_path, cell)
    found = []
    for size in (source.SMALL, 0):
        monkeypatch.setattr(source, "SMALL", size)
        try:
            found.append(recall(file, "3tokens"))
        except groupgt.DataError:
            found.append(None)
    assert found[0] == found[1]
    # 1 + 2 = 3.
    assert cell not in WHOLE_TEXTS or found[0] == 1


@pytest.mark.parametrize("beside", [[1], [1, 1, 1], [], None, 3, "x"], ids=str)
@pytest.mark.parametrize("column", ["retrieved_tokens", "retrieved_contents"])
def test_too_few_lengths_and_too_many(column: str, beside: Any, tmp_path: Path) -> None:
    if column == "retrieved_contents" and isinstance(beside, list):
        beside = ["x" for _ in beside]
    file = lines(tmp_path / "run.jsonl", {"qid": "q", "retrieved_ids": ["a", "b"], column: beside})
    budget = "3tokens" if column == "retrieved_tokens" else "3chars"
    with pytest.raises(groupgt.DataError, match=r"run\.jsonl.*'q'.*each of 2 results"):
        recall(file, budget)
    assert whole(file) == 1


def test_a_text_that_is_null_has_no_length(tmp_path: Path) -> None:
    file = lines(tmp_path / "run.jsonl", {"qid": "q", "retrieved_ids": ["a", "b"], "retrieved_contents": ["x", None]})
    with pytest.raises(groupgt.DataError, match=r"run\.jsonl.*'q'"):
        recall(file, "3chars")
    with pytest.raises(groupgt.DataError, match=r"run\.jsonl.*'q'"):
        recall(file, "3tokens", groupgt.Lengths(count=words))
    assert whole(file) == 1


def test_a_row_that_lacks_its_length_is_named_by_its_query_alone(tmp_path: Path) -> None:
    rows = [{"qid": qid, "doc_id": name, "score": 1, "tokens": 1} for qid in ("p", "q") for name in ("a", "b")]
    del rows[3]["tokens"]
    file = lines(tmp_path / "run.jsonl", *rows)
    with pytest.raises(groupgt.DataError, match="query 'q'") as caught:
        groupgt.evaluate({**TRUTH, "p": [["a"]]}, file, ["recall@3tokens"])
    assert caught.value.total == 1
    # A query that nobody judged needs no lengths.
    found = groupgt.evaluate({"p": [["a"]]}, file, ["recall@3tokens"])
    assert found["recall@3tokens"] == 1


def doubtful(folder: Path, **columns: Any) -> Path:
    frame = {"qid": ["q", "q"], "doc_id": ["a", "b"], "score": [2.0, 1.0], "tokens": [1, 1], "chars": [1, 1], **columns}
    pl.DataFrame(frame).write_parquet(folder / "run.parquet")
    return folder / "run.parquet"


@pytest.mark.parametrize("columns", [{"score": [2.0, float("nan")]}, {"doc_id": ["a", None]}, {"doc_id": ["a", " "]}])
def test_a_faulty_row_is_named_where_columns_of_lengths_stand_beside_it(columns: Any, tmp_path: Path) -> None:
    file = doubtful(tmp_path, **columns)
    with pytest.raises(groupgt.DataError, match=r"run\.parquet: row 2: query 'q'"):
        whole(file)


def test_a_null_length_is_no_fault_of_the_results(tmp_path: Path) -> None:
    """Where rankings are read back, to be converted or explained, lengths do not matter."""
    file = doubtful(tmp_path, tokens=[1, None])
    rankings = dict(all_rankings(groupgt.read_run(file), Policy()))
    assert list(rankings["q"][0]) == ["a", "b"]
    assert "a" in groupgt.evaluate(TRUTH, file, ["recall"]).explain("q")


# ---- corpora ----------------------------------------------------------------------------------------------------


def corpus(folder: Path, kind: str, *rows: dict[str, Any]) -> Path:
    file = folder / f"corpus.{kind}"
    if kind == "jsonl":
        return lines(file, *rows)
    frame = pl.DataFrame(rows)
    frame.write_csv(file) if kind == "csv" else frame.write_parquet(file)
    return file


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_corpus_of_texts(kind: str, tmp_path: Path) -> None:
    file = corpus(tmp_path, kind, {"doc_id": "a", "contents": "to bé"}, {"doc_id": "b", "contents": "or"})
    # 5, and 5 + 2 = 7 characters; 2, and 2 + 1 = 3 words.
    assert recalls(LISTS, (4, 5, 7), "chars", read_lengths(file)) == [0, 0.5, 1]
    assert recalls(LISTS, (1, 2, 3), "tokens", read_lengths(file, words)) == [0, 0.5, 1]
    with pytest.raises(groupgt.DataError, match="tokenizer"):
        recall(LISTS, "3tokens", read_lengths(file))


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_corpus_of_texts_and_lengths(kind: str, tmp_path: Path) -> None:
    rows = [
        {"doc_id": name, "contents": "one two three", "tokens": tokens, "chars": 1}
        for name, tokens in (("a", 2), ("b", 1))
    ]
    file = corpus(tmp_path, kind, *rows)
    assert recalls(LISTS, (1, 2, 3), "tokens", read_lengths(file)) == [0, 0.5, 1]
    # The column chars goes before the text: 1 + 1. A tokenizer goes before the column tokens: 3 + 3.
    assert recalls(LISTS, (1, 2), "chars", read_lengths(file)) == [0.5, 1]
    assert recalls(LISTS, (2, 3, 6), "tokens", read_lengths(file, words)) == [0, 0.5, 1]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_corpus_of_lengths_alone(kind: str, tmp_path: Path) -> None:
    file = corpus(tmp_path, kind, {"doc_id": "a", "tokens": 2}, {"doc_id": "b", "tokens": 1})
    assert recalls(LISTS, (1, 2, 3), "tokens", read_lengths(file)) == [0, 0.5, 1]


def test_titles_are_ids_only_beside_a_warning_if_a_column_may_have_them(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"page_id": "p1", "title": "Ferries", "text": "At eight."}\n')
    with pytest.warns(
        groupgt.GroupgtWarning, match="titles are the ids; if page_id contains the ids, rename it to doc_id"
    ):
        assert read_corpus(path) == {"Ferries": "Ferries\nAt eight."}
    path.write_text('{"title": "Ferries", "text": "At eight."}\n')
    assert list(read_corpus(path)) == ["Ferries"]


def test_a_title_counts_with_its_text(tmp_path: Path) -> None:
    file = corpus(tmp_path, "jsonl", {"_id": "a", "title": "T", "text": "xy"}, {"_id": "b", "title": "", "text": "z"})
    # "T\nxy" is 4, "z" is 1.
    assert recalls(LISTS, (3, 4, 5), "chars", read_lengths(file)) == [0, 0.5, 1]


@pytest.mark.filterwarnings("ignore:.* not in the corpus")
def test_a_document_that_the_corpus_does_not_hold(tmp_path: Path) -> None:
    file = corpus(tmp_path, "jsonl", {"doc_id": "a", "contents": "x"})
    with pytest.raises(groupgt.DataError, match=r"corpus\.jsonl.*'b' in chars"):
        recall(LISTS, "3chars", read_lengths(file))
    assert whole(LISTS, read_lengths(file)) == 1


@pytest.mark.parametrize("cell", [-1, 1.5, "x", True], ids=repr)
@pytest.mark.parametrize("unit", ["tokens", "chars"])
@pytest.mark.parametrize("others", ["good", "bad"])
def test_a_bad_length_in_a_corpus(cell: Any, unit: str, others: str, tmp_path: Path) -> None:
    """Named with its line or its document; never passed over, as if the column were not there."""
    rows = [{"doc_id": "a", "contents": "x", unit: 1 if others == "good" else cell}]
    file = corpus(tmp_path, "jsonl", *rows, {"doc_id": "b", "contents": "x", unit: cell})
    with pytest.raises(groupgt.DataError, match=r"corpus\.jsonl.*'b'"):
        recall(LISTS, f"3{unit}", read_lengths(file))


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(groupgt.DataError, match="file not found"):
        read_lengths(tmp_path / "corpus.jsonl")
    with pytest.raises(groupgt.DataError, match="no documents"), pytest.warns(groupgt.GroupgtWarning):
        read_lengths(written(tmp_path / "corpus.csv", ""))


# ---- tokenizers -------------------------------------------------------------------------------------------------


def test_whitespace() -> None:
    assert list(tokenizer_named("whitespace")(["to  be\tor\n", "", " ", "é"])) == [3, 0, 0, 1]


@pytest.mark.parametrize(
    "name",
    ["", ":", "white", "Whitespace", "whitespace:x", "tiktoken", "tiktoken:", "tokenizers:", "python:", "nope:x"],
)
def test_a_name_that_is_none(name: str) -> None:
    for ask in (tokenizer_named, check_tokenizer):
        with pytest.raises(groupgt.ConfigError, match="expected whitespace, tiktoken:ENCODING"):
            ask(name, allow_code=True)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules, which are forgotten afterwards."""
    import sys

    kept = set(sys.modules)
    written(
        tmp_path / "counting_words.py", "def words(texts):\n    return [len(t.split()) for t in texts]\nVALUE = 'x'\n"
    )
    written(tmp_path / "broken_counting.py", "def words(:\n")
    written(tmp_path / "raising_counting.py", "raise RuntimeError('no model here')\n")
    yield tmp_path
    for name in set(sys.modules) - kept:
        del sys.modules[name]


def test_a_function_of_the_user(modules: Path) -> None:
    import sys

    before = list(sys.path)
    count = tokenizer_named("python:counting_words:words", allow_code=True, folder=modules)
    assert count(["to be", ""]) == [2, 0]
    assert sys.path == before


def test_code_needs_to_be_allowed(modules: Path) -> None:
    import sys

    for ask in (tokenizer_named, check_tokenizer):
        with pytest.raises(groupgt.ConfigError, match="--allow-code"):
            ask("python:counting_words:words")
    assert "counting_words" not in sys.modules


@pytest.mark.parametrize(
    "rest",
    [
        "counting_words",
        "counting_words:",
        "counting_words:nothing",
        "counting_words:words:more",
        "nowhere_at_all:words",
        ":words",
        ".counting_words:words",
        "counting_words:VALUE",
        "broken_counting:words",
        "raising_counting:words",
    ],
)
def test_code_that_is_no_function(rest: str, modules: Path) -> None:
    import sys

    before = list(sys.path)
    with pytest.raises(groupgt.ConfigError, match="tokenizer"):
        tokenizer_named(f"python:{rest}", allow_code=True, folder=modules)
    assert sys.path == before


@pytest.fixture
def word_level(tmp_path: Path) -> Any:
    """A tokenizer of three words."""
    library = pytest.importorskip("tokenizers", reason="tokenizers is in the extra groupgt[tokens]")
    made = library.Tokenizer(library.models.WordLevel({"to": 0, "be": 1, "?": 2, "[PAD]": 3}, unk_token="?"))
    made.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    made.post_processor = library.processors.TemplateProcessing(single="be $A be", special_tokens=[("be", 1)])
    return made


def test_a_tokenizer_from_a_file(word_level: Any, tmp_path: Path) -> None:
    word_level.save(str(tmp_path / "words.json"))
    texts = ["to be", "", "to be or not"]
    # Without the two special tokens that stand around each text.
    assert list(tokenizer_named(f"tokenizers:{tmp_path / 'words.json'}")(texts)) == [2, 0, 4]
    assert list(tokenizer_named("tokenizers:words.json", folder=tmp_path)(texts)) == [2, 0, 4]


def test_a_tokenizer_that_pads_and_cuts_still_counts_each_text(word_level: Any, tmp_path: Path) -> None:
    """Files of embedding models do: all-MiniLM-L6-v2 cuts at 128 tokens and pads to 128."""
    texts = ["to be", "", "to be or not"]
    word_level.enable_padding(pad_id=3, pad_token="[PAD]", length=8)
    word_level.save(str(tmp_path / "padding.json"))
    assert list(tokenizer_named(f"tokenizers:{tmp_path / 'padding.json'}")(texts)) == [2, 0, 4]
    word_level.no_padding()
    word_level.enable_truncation(3)
    word_level.save(str(tmp_path / "cutting.json"))
    assert list(tokenizer_named(f"tokenizers:{tmp_path / 'cutting.json'}")(texts)) == [2, 0, 4]


def test_a_tokenizer_file_that_is_none(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is in the extra groupgt[tokens]")
    file = written(tmp_path / "broken.json", "{}")
    with pytest.raises(groupgt.ConfigError, match=r"broken\.json"):
        tokenizer_named(f"tokenizers:{file}")
    with pytest.raises(groupgt.ConfigError, match=r"absent\.json"):
        tokenizer_named(f"tokenizers:{tmp_path / 'absent.json'}")


def test_a_file_that_is_not_there_is_not_looked_for_in_the_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ends in .json is a file: asking the Hub for it takes 20 s of retries where there is no network."""
    library = pytest.importorskip("tokenizers", reason="tokenizers is in the extra groupgt[tokens]")
    asked: list[str] = []

    class Offline:
        @staticmethod
        def from_pretrained(name: str) -> Any:
            asked.append(name)
            raise OSError("no network")

    monkeypatch.setattr(library, "Tokenizer", Offline)
    with pytest.raises(groupgt.ConfigError, match=r"absent\.json"):
        tokenizer_named("tokenizers:absent.json")
    assert asked == []


def test_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its vocabularies come over the network, so one of bytes stands in for them."""
    library = pytest.importorskip("tiktoken", reason="tiktoken is in the extra groupgt[tokens]")
    from tiktoken import registry

    made = library.Encoding(
        "bytes",
        pat_str=r"\S+|\s+",
        mergeable_ranks={bytes([each]): each for each in range(256)},
        special_tokens={"<|end|>": 256},
    )
    monkeypatch.setitem(registry.ENCODINGS, "bytes", made)
    monkeypatch.setattr(library, "list_encoding_names", lambda: ["bytes", "cl100k_base"])
    # é is two bytes; what looks like a special token is text of seven.
    assert list(tokenizer_named("tiktoken:bytes")(["abc", "", "é", "<|end|>"])) == [3, 0, 2, 7]
    with pytest.raises(groupgt.ConfigError, match=r"no encoding 'nope'.*cl100k_base"):
        tokenizer_named("tiktoken:nope")


def test_a_damaged_download_is_not_an_unknown_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    """tiktoken raises ValueError for both."""
    library = pytest.importorskip("tiktoken", reason="tiktoken is in the extra groupgt[tokens]")

    def damaged(name: str) -> Any:
        raise ValueError("Hash mismatch for data downloaded")

    monkeypatch.setattr(library, "get_encoding", damaged)
    with pytest.raises(groupgt.ConfigError, match="Hash mismatch"):
        tokenizer_named("tiktoken:cl100k_base")


@pytest.mark.parametrize("library", ["tiktoken", "tokenizers"])
def test_a_library_that_is_not_installed(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(groupgt.ConfigError, match=rf"needs {library}: pip install .groupgt\[tokens\]"):
        tokenizer_named(f"{library}:name")
