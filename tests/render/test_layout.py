"""Tables and paragraphs laid out for a terminal of fixed width."""

from __future__ import annotations

import random
import re

import pytest
import tabulate

from groupgt.render.bars import Axis, labels
from groupgt.render.document import Detail, Verdict, document
from groupgt.render.layout import Cells, Screen, columns_of, cut, end_cut, fitted, flowed, middle_cut, rendered, wrapped
from groupgt.render.tables import Table, table


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def widest(text: str) -> int:
    return max(columns_of(line) for line in plain(text).split("\n"))


def test_tables_look_as_tabulate_draws_them() -> None:
    chance = random.Random(1)
    for _ in range(300):
        columns, count = chance.randint(1, 5), chance.randint(0, 4)

        def word() -> str:
            return "".join(chance.choice("ab c.d1") for _ in range(chance.randint(0, 9))).strip()

        headers = [word() for _ in range(columns)]
        rows = [[word() for _ in headers] for _ in range(count)]
        right = [bool(rows) and chance.random() < 0.5 for _ in headers]
        aligned = ["right" if own else "left" for own in right] if rows else None
        expected = tabulate.tabulate(rows, headers, "simple", disable_numparse=True, colalign=aligned)
        assert rendered(Cells(headers, rows, right=right)) == expected


def test_wide_scripts_stay_aligned() -> None:
    lines = table(["run", "map"], [["検索", 0.5], ["e\u0301", 0.25], ["plain", 1.0]]).split("\n")
    assert {columns_of(line) for line in lines[2:]} == {columns_of(lines[2])}


WIDE = Table(
    ["run", "mean", "interval", "delta", "p"],
    [["bm25", 0.5, "0.4000 to 0.6000", "", ""], ["dense", 0.6, "0.5000 to 0.7000", "+0.1000*", "0.0100"]],
    shed=("interval", "p"),
)


def test_full_width_without_a_terminal() -> None:
    assert document([WIDE]) == table(WIDE.headers, WIDE.rows)


def test_columns_are_left_out_in_their_order_and_named() -> None:
    shown = document([WIDE], screen=Screen(width=34))
    assert shown.split("\n")[0].split() == ["run", "mean", "delta", "p"]
    assert "Hidden columns: interval" in " ".join(shown.split())
    assert widest(shown) <= 34
    assert document([WIDE], screen=Screen(width=28)).split("\n")[0].split() == ["run", "mean", "delta"]


def test_what_cannot_be_left_out_is_divided_and_named_again() -> None:
    grid = (["run", *(f"metric@{k}" for k in range(9))], [["bm25", *[0.5] * 9], ["dense", *[0.25] * 9]])
    shown = document([grid], screen=Screen(width=40))
    parts = shown.split("\n\n")
    assert len(parts) == 3
    assert all(part.split("\n")[0].startswith("run") and part.split("\n")[2].startswith("bm25") for part in parts)
    assert [name for part in parts for name in part.split("\n")[0].split()[1:]] == grid[0][1:]
    assert widest(shown) <= 40


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    rows = [["q1", "検索 " * 60, 0.5], ["q2", "short", 0.25]]
    shown = document([(["query", "text", "map"], rows), "word " * 60, WIDE], screen=Screen(width=width))
    assert widest(shown) <= width


def test_long_text_is_cut_and_figures_are_not() -> None:
    cells = Cells(["query", "text", "map"], [["q1", "word " * 18, "0.1234"]], right=[False, False, True])
    (part,), left_out = fitted(cells, 50)
    assert left_out == []
    assert part.rows[0][1].endswith("word…")
    assert part.rows[0][2] == "0.1234"


@pytest.mark.parametrize("start", ["bge-{}-dense-of-a-long-hybrid", "bge-m3-dense-{}-of-a-long-hybrid"])
def test_names_lose_their_middle_and_stay_distinct(start: str) -> None:
    names = [start.format(place) for place in range(3)]
    cells = Cells(["run", "map"], [[name, "0.1234"] for name in names], right=[False, True])
    # The beginning has 14 characters up to the digit of the second names, the end 14 or 15, and the sign 1.
    for width in (22, 30, 38):
        (part,), _ = fitted(cells, width)
        shown = [name for name, _ in part.rows]
        assert len(set(shown)) == 3
        assert all(name.startswith("bge") and name.endswith("hybrid") for name in shown)
        assert widest(rendered(part, padding=0)) <= max(width, 22 if start == "bge-{}-dense-of-a-long-hybrid" else 37)


def test_names_with_blanks_lose_their_middle_too() -> None:
    names = [f"hybrid search with reranker top {depth}" for depth in (50, 100)]
    rows = [[name, 0.5, name, "one two three four five"] for name in names]
    shown = document([Table(["run", "map", "in run", "text"], rows, names=["in run"])], screen=Screen(width=60))
    # The other columns shrink first, to 12 and 16, which leaves 60 − 6 − 6 − 12 − 16 = 20 for the first.
    cells = [[cell.strip() for cell in line.split("  ")] for line in shown.split("\n")[2:]]
    assert [row[0] for row in cells] == ["hybrid se…ker top 50", "hybrid se…er top 100"]
    assert [row[2] for row in cells] == ["hybri…top 50", "hybri…op 100"]
    assert widest(shown) <= 60


GROUPED = Table(
    ["run", "map", "free", "pro", "free", "pro"],
    [["a-run-with-a-long-name", 0.5, 0.25, 0.75, 0.1, 0.2]],
    shed=("mrr by tier", "map by tier: pro"),
    above=["", "", "map by tier", "map by tier", "mrr by tier", "mrr by tier"],
)


def test_groups_of_columns_have_a_title_and_are_hidden_together() -> None:
    lines = document([GROUPED]).split("\n")
    places = [place for place, width in enumerate(lines[2]) if lines[2][place - 1 : place + 1] == " -"]
    assert [lines[0].index("map by"), lines[0].index("mrr by")] == [places[1], places[3]]
    assert document([GROUPED], "github").startswith("| run                    |    map |   map by tier: free |")
    shown = document([GROUPED], screen=Screen(width=50))
    assert "mrr by tier" not in shown.split("\n")[0]
    assert "Hidden columns: mrr by tier (--wide shows all)" in shown
    assert shown.split("\n")[1].split() == ["run", "map", "free", "pro"]
    shown = document([GROUPED], screen=Screen(width=34))
    assert shown.split("\n")[1].split() == ["run", "map", "free"]
    assert widest(shown.split("\n\n")[0]) <= 34


def test_lines_are_broken_between_words() -> None:
    assert wrapped("one two three four", 9) == "one two\n  three\n  four"
    assert wrapped("one two three four", None) == "one two three four"
    assert wrapped("one two three\n  four five six", 11) == "one two\n  three\n  four five\n    six"
    assert flowed(["one two", "three", "four five"], 16) == "one two  three\n  four five"


def test_texts_are_cut_where_they_are_not_told_apart() -> None:
    assert [columns_of(text) for text in ("map", "検索", "e\u0301")] == [3, 4, 1]
    assert cut("Thirty days of leave", 12) == "Thirty days…"
    assert end_cut("refunds/article-0260#chunk-01", 12) == "…60#chunk-01"
    assert middle_cut("hybrid+cohere-rerank-3.5", 12) == "hybri…nk-3.5"


def test_labels_of_ticks_never_touch() -> None:
    assert labels(Axis(0.0, 1.0, (0.0, 0.1, 1.0), has_zero=False), 12) == {0.0: (0, "0"), 1.0: (9, "1.0")}


def test_paragraphs_and_tables_have_one_format() -> None:
    text = document(["a & b", (["run", "map"], [["x", 0.5]])], "github")
    assert text == "a & b\n\n| run   |    map |\n|-------|--------|\n| x     | 0.5000 |"
    assert table(["run", "map"], [["a", 0.5]]) == "run       map\n-----  ------\na      0.5000"
    numbers = document([(["run", "delta", "p", "effect"], [["dense", "-0.0312*", "–", "+∞"]])], "latex_booktabs")
    assert "dense & $-$0.0312$^{*}$ & -- & +$\\infty$" in re.sub(" +", " ", numbers)


SENTENCES = Verdict(
    [
        {"kind": "best", "parts": ["", "a", " is a good one."]},
        {"kind": "doubt", "parts": ["Few questions differ."]},
        {"kind": "failed", "parts": ["1 of 2 gates failed."]},
    ]
)


def test_a_verdict_names_doubts_and_failures() -> None:
    lines = ["a is a good one.", "warning: Few questions differ.", "FAILED: 1 of 2 gates failed."]
    assert document([SENTENCES]).split("\n") == lines
    assert document([SENTENCES], "github").split("\n") == [f"- {line}" for line in lines]


def test_color_changes_nothing_but_color() -> None:
    items = [SENTENCES, (["gate", "result"], [["1", "FAILED"], ["2", "passed"]]), WIDE, "warning: doubtful"]
    colored = document(items, screen=Screen(color=True))
    assert plain(colored) == document(items)
    assert "\x1b[1ma\x1b[0m is a good one." in colored
    assert "\x1b[33mwarning: Few questions differ.\x1b[0m" in colored
    assert "\x1b[1;31mFAILED\x1b[0m" in colored
    assert "\x1b[1m+0.1000*\x1b[0m" in colored
    assert "\x1b[33mwarning: doubtful\x1b[0m" in colored


def test_details_on_request() -> None:
    items = ["first", Detail("second")]
    assert document(items, screen=Screen(details=False)) == "first"
    assert document(items) == "first\n\nsecond"
