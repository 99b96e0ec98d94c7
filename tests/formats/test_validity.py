"""Rules for ids, numbers and rows, tried on everything that can be spelled, value by value and on whole columns."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt.formats import validity as of_columns
from groupgt.formats.fields import call_of, length_of
from groupgt.formats.tables import grades_of
from groupgt.model import validity
from groupgt.model.groups import stated_answerable

# Surrogates stand in no column of polars, and in no file that is UTF-8.
SURROGATES = [chr(code) for code in range(0xD800, 0xE000, 15)]
PLACES = ["{}", "{}a", "a{}b", "a{}", " {}", "{} ", "é{}漢"]


@cache
def letters() -> list[str]:
    """Every character that is a blank, a control or a mark of format, and every hundredth of the rest."""
    return [
        letter
        for code in range(0x110000)
        if (category := unicodedata.category(letter := chr(code))) in ("Cc", "Cf", "Zs", "Zl", "Zp")
        or (category != "Cs" and (code < 0x100 or code % 100 == 0))
    ]


def says(rule: pl.Expr, texts: list[str | None]) -> list[bool]:
    return pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)}).select(rule.alias("says"))["says"].to_list()


@pytest.mark.parametrize("place", PLACES)
def test_every_character_in_an_id(place: str) -> None:
    names = [place.format(letter) for letter in letters()]
    python = [validity.id_fault(name) is None for name in names]
    assert says(of_columns.is_id(pl.col("text")), names) == python
    wrong = {unicodedata.category(letter) for letter, holds in zip(letters(), python) if not holds}
    blank = place.strip(" ") == "{}"
    assert wrong == {"Cc", "Cf", "Zl", "Zp", *(["Zs"] if blank else [])}
    # Of what has no width and gives direction only the byte order mark is refused.
    refused = [letter for letter, holds in zip(letters(), python) if not holds and unicodedata.category(letter) == "Cf"]
    assert refused == ["\ufeff"]


@pytest.mark.parametrize("place", PLACES)
def test_glances_are_sure(place: str) -> None:
    """What a glance lets pass is an id; what it doubts, of ASCII, is rare enough."""
    names = [place.format(letter) for letter in letters()]
    glance = says(of_columns.is_plainly_id(pl.col("text")), names)
    python = [validity.id_fault(name) is None for name in names]
    assert all(holds for holds, sure in zip(python, glance) if sure)
    for start in range(0, len(names), 97):
        some = names[start : start + 97]
        if validity.are_plainly_ids(some):
            assert all(python[start : start + 97])
    for name in (name for name, holds in zip(names, python) if not holds):
        assert not validity.are_plainly_ids([name])
        assert not validity.are_plainly_ids(["a", name, "b"])


@pytest.mark.parametrize("place", PLACES)
def test_surrogates_are_no_characters(place: str) -> None:
    for letter in SURROGATES:
        name = place.format(letter)
        assert "surrogate" in (validity.id_fault(name) or "")
        assert not validity.are_plainly_ids(["a", name])


def test_plain_ids_of_many_languages() -> None:
    names = ["a", "doc 1", "문서_1", "документ", "文档", "é", "😀", "a–b"]
    assert validity.are_plainly_ids(names[:7])
    assert validity.are_plainly_ids([])
    for odd in ("", " ", "a\nb", "\n", "a\x7f", "\u3000", "\u00a0", "x\u0085"):
        assert not validity.are_plainly_ids(["a", odd])
        assert not validity.are_plainly_ids([odd])


@pytest.mark.parametrize("letter", ["x", "é", "漢", "😀"])
def test_the_longest_id(letter: str) -> None:
    size = len(letter.encode())
    longest = letter * (validity.LONGEST_ID // size) + "x" * (validity.LONGEST_ID % size)
    for name, holds in ((longest, True), (longest + "x", False)):
        assert (validity.id_fault(name) is None) is holds
        assert says(of_columns.is_id(pl.col("text")), [name]) == [holds]
        assert holds or says(of_columns.is_plainly_id(pl.col("text")), [name]) == [False]
        assert holds or not validity.are_plainly_ids([name])


def test_nothing_is_no_id() -> None:
    for rule in (of_columns.is_id, of_columns.is_plainly_id, of_columns.is_number):
        assert says(rule(pl.col("text")), [None, "7"]) == [False, True]


ODD_NUMBERS = [
    "inf", "-inf", "nan", "NaN", "infinity", "Infinity", "1e400", "-1e400", "1e-400", "5e-324", "0x1", "0x1p3", "1_000",
    "1__0", "1,5", "1d5", "1f", "1e5", "1E+5", "1e", "e5", "1.", ".5", ".", "+1", "--1", "+-1", "True", "１", "٣",
    "1\u0663", "²", "½", "-0", "-0.0", "00012", "1e0005", "3.0", "3.00", "3.01", " 1", "1 ", "\t1", "1\n", "1\x1c",
    "\u00a01", "1\0", "", "9007199254740993",
]  # fmt: skip


def spellings() -> Iterator[str]:
    """Numbers and what is nearly one."""
    yield from ODD_NUMBERS
    yield from ("9" * 400, "0." + "1" * 400, "1" + "0" * 308, "1" + "0" * 309)
    for size in range(5):
        yield from map("".join, product("019.eE+-_ ", repeat=size))


SPELLINGS = list(dict.fromkeys(spellings()))


def same_double(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return first == second and math.copysign(1, first) == math.copysign(1, second)


def test_every_spelling_of_a_number() -> None:
    frame = pl.DataFrame({"text": SPELLINGS}).select(
        number=pl.when(of_columns.is_score(spelled := of_columns.number_of(pl.col("text")))).then(spelled),
        is_number=of_columns.is_number(pl.col("text")),
    )
    for text, number, is_number in zip(SPELLINGS, *(frame[name].to_list() for name in frame.columns)):
        assert same_double(validity.number_of(text), number), text
        assert validity.is_number(text) is is_number, text
        if text == text.strip() and text.split() == [text]:
            assert same_double(validity.number_of_bytes(text.encode()), number), text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1_000", None), ("1e5", 1e5), ("+1", 1.0), (" 1", None), ("inf", None), ("nan", None), ("0x1", None),
        ("٣", None), ("1.", 1.0), (".5", 0.5), ("1e400", None), ("1e-400", 0.0), ("", None), ("-0", -0.0),
    ],
)  # fmt: skip
def test_numbers(text: str, number: float | None) -> None:
    assert same_double(validity.number_of(text), number)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("1", True), ("+1", True), ("-1", True), ("007", True), ("1.0", True), ("1.", True), ("", False),
        ("0.9", False), ("1.5", False), ("1e3", False), ("b", False), ("1_0", False), ("٣", False), (" 1", False),
    ],
)  # fmt: skip
def test_ranks(text: str, holds: bool) -> None:
    assert validity.is_rank(text) is holds


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([repr, "{:.17e}".format, "{:.3f}".format]))
def test_doubles_read_alike(value: float, spelled: object) -> None:
    text = spelled(value)  # type: ignore[operator]
    column = pl.DataFrame({"text": [text]}).select(of_columns.number_of(pl.col("text"))).item()
    assert same_double(validity.number_of(text), column)
    assert same_double(validity.number_of_bytes(text.encode()), column)
    assert validity.number_of(text) == float(text)


@given(st.lists(st.text(st.deferred(lambda: st.sampled_from(letters())), max_size=6), max_size=6))
def test_a_glance_at_several_ids_is_sure(names: list[str]) -> None:
    python = [validity.id_fault(name) is None for name in names]
    assert says(of_columns.is_id(pl.col("text")), names) == python
    assert not validity.are_plainly_ids(names) or all(python)


def test_values_that_are_no_text() -> None:
    numpy = pytest.importorskip("numpy")
    assert [validity.id_text(value) for value in (7, numpy.int64(7), "7", True, numpy.bool_(True), 7.0, None)] == [
        "7", "7", "7", None, None, None, None,
    ]  # fmt: skip
    assert [validity.is_grade(number) for number in (2.0**31, -(2.0**31), 2.0**31 + 1, None)] == [
        True,
        True,
        False,
        False,
    ]


def test_rows_at_fault_are_named() -> None:
    rows = pl.LazyFrame({"qid": ["q", "q", None, "q\t"], "doc": ["a", "", "b", "c"], "score": [1.0, 1.0, 1.0, 1.0]})
    with pytest.raises(of_columns.DataError) as caught:
        of_columns.refuse_rows(rows, "run", "score")
    assert caught.value.faults == (
        "run: row 2: query 'q': the document id '' is blank",
        "run: row 3: query None: expected a qid and a doc_id, found null",
        "run: row 4: query 'q\\t': the query id contains the control character U+0009",
    )


def test_rows_are_named_by_their_number_and_order() -> None:
    rows = {"qid": ["q", None, "q", "q"], "doc": ["a", "b", " ", "d"], "score": [1.0, 2.0, 3.0, float("inf")]}
    with pytest.raises(of_columns.DataError) as caught:
        of_columns.refuse_rows(pl.LazyFrame(rows), "run", "score")
    lines = [line.strip() for line in str(caught.value).splitlines()]
    assert "run: row 2: query None: expected a qid and a doc_id, found null" in lines
    assert "run: row 3: query 'q': the document id ' ' is blank" in lines
    assert "run: row 4: query 'q': expected a finite number as the score, found inf" in lines
    with pytest.raises(of_columns.DataError, match=r"run: row 1: query 'q': expected .* as the rank, found -inf"):
        of_columns.refuse_rows(pl.LazyFrame({name: column[3:] for name, column in rows.items()}), "run", "rank")
    sound = pl.LazyFrame({"qid": ["q"], "doc": ["a"], "score": [1.0]})
    with pytest.raises(of_columns.DataError, match="run: the results changed while"):
        of_columns.refuse_rows(sound, "run", "score")


def test_what_polars_says_is_an_error_of_ours() -> None:
    def broken() -> None:
        raise pl.exceptions.ComputeError("the first line\nthe second")

    with pytest.raises(of_columns.DataError, match=r"^run: cannot be read: the first line$"):
        of_columns.guarded("run", "cannot be read", broken)
    with pytest.raises(of_columns.DataError, match="run: cannot be read: OSError"):
        of_columns.guarded("run", "cannot be read", lambda: (_ for _ in ()).throw(OSError()))
    assert of_columns.guarded("run", "cannot be read", lambda: 7) == 7
    rechecked: list[int] = []

    def recheck() -> groupgt.Run:
        rechecked.append(1)
        return groupgt.Run.of({})

    guard = of_columns.rechecked(pl.LazyFrame(), recheck).guard
    assert guard(lambda: 8) == 8
    assert rechecked == []
    with pytest.raises(pl.exceptions.ComputeError):
        guard(broken)
    assert rechecked == [1]


@pytest.mark.parametrize(
    ("number", "holds"),
    [(1, True), (7.0, True), (10**12, True), (0, False), (-1, False), (1.5, False), (10**12 + 1, False), (None, False)],
)
def test_numbers_of_calls_in_columns_are_those_of_rows(number: float | None, holds: bool) -> None:
    column = pl.DataFrame({"call": pl.Series([number], dtype=pl.Float64)})
    assert column.select(of_columns.call_numbers(pl.col("call")).is_not_null()).item() is holds
    assert (call_of(number) is not None) is holds


def test_calls_may_be_texts_and_are_ordered_as_numbers() -> None:
    rows = {"qid": ["q"] * 3, "doc_id": ["a", "b", "c"], "score": [1.0, 1.0, 1.0], "call": ["10", "2", "9"]}
    # By number the calls are 2, 9, 10, so "a" comes third; as texts, 10 would come first.
    assert groupgt.evaluate({"q": ["a"]}, pl.DataFrame(rows), ["mrr"])["mrr"] == 1 / 3
    with pytest.raises(groupgt.DataError, match="expected a whole number from 1 as the call, found '1e1'"):
        groupgt.evaluate({"q": ["a"]}, pl.DataFrame({**rows, "call": ["1e1", "2", "9"]}), ["mrr"])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_no_calls(number: float) -> None:
    assert (
        pl.DataFrame({"call": [number]}).select(of_columns.call_numbers(pl.col("call")).is_not_null()).item() is False
    )
    assert call_of(number) is None


def test_rows_that_are_refused_say_which_cell_is_wrong() -> None:
    rows = {"qid": ["a", "b", "c", "d"], "doc": ["x"] * 4, "score": [1.0, -math.inf, None, -2.0]}
    frame = pl.LazyFrame({**rows, "calls": [1, 1, None, 0]})
    with pytest.raises(groupgt.DataError) as caught:
        of_columns.refuse_rows(frame, "run", "rank")
    assert list(caught.value.faults) == [
        "run: row 2: query 'b': expected a finite number as the rank, found inf",
        "run: row 3: query 'c': expected a finite number as the rank, found None; give every result a score, or leave "
        "out all scores (groupgt then uses ranks or order)",
        "run: row 4: query 'd': expected a whole number from 1 as the call, found 0",
    ]


def test_a_row_without_a_rank_is_named() -> None:
    rows = pl.LazyFrame({"qid": ["q"], "doc": ["a"], "score": [None]}, schema_overrides={"score": pl.Float64})
    with pytest.raises(groupgt.DataError, match="row 1: query 'q': expected a finite number as the rank, found None"):
        of_columns.refuse_rows(rows, "runs", "rank")


def test_every_spelling_of_true_and_false() -> None:
    assert [stated_answerable(cell) for cell in ("No", 0.0, True, "", float("nan"))] == [False, False, True, None, None]


def test_lengths_are_whole_numbers_from_0() -> None:
    assert [length_of(cell) for cell in (12, "12", 12.0, 1.5, "-1")] == [12, 12, 12, None, None]


def test_grades_are_numbers_and_text_is_parsed_where_all_is_text() -> None:
    assert repr(grades_of(["1", "0.5", "x"], text=True).tolist()) == "[1.0, 0.5, nan]"
    assert repr(grades_of([1, True, 2.0], text=False).tolist()) == "[1.0, nan, 2.0]"
