"""The page gets values whole, and their digits as text."""

from __future__ import annotations

from groupgt.render.page import blocks
from groupgt.render.page.page import page_bytes
from groupgt.render.tables import fixed
from tests.render.samples import dataset, page
from tests.render.test_page import read, value

# A mean of this is 0.7646; six digits of it, 0.76455, are 0.7645 as a double.
TWICE = 0.76455026


def test_values_reach_the_page_whole() -> None:
    """Means, intervals, differences, p-values, values of slices and of queries: the very doubles."""
    one = dataset()
    one["systems"][0]["means"][0] = TWICE
    one["systems"][0]["intervals"][0] = (TWICE / 3, TWICE)
    texts = [["0.76"], ["–"]]
    one["slices"] = [{"by": "type", "value": "a", "queries": 3, "means": [[TWICE], [None]], "texts": texts}]
    one["contrasts"]["rows"] = [
        [0, 1, 0, -1, TWICE / 3, (TWICE / 7, TWICE), [2, 1, 1], [], "better", False, None],
    ]
    one["questions"]["values"][0]["numbers"][0] = TWICE / 11
    reader = read(page_bytes(page(one)))
    shown = value(reader, "page")["datasets"][0]
    assert shown["systems"][0]["means"][0] == TWICE
    assert shown["systems"][0]["intervals"][0] == [TWICE / 3, TWICE]
    assert shown["slices"][0]["means"] == [[TWICE], [None]]
    assert shown["contrasts"]["rows"][0][4:6] == [TWICE / 3, [TWICE / 7, TWICE]]
    assert value(reader, "values-0-0")["numbers"][0] == TWICE / 11
    text = page_bytes(page(one)).decode()
    assert f"<td class='number'>{fixed(TWICE)}</td>" in text
    assert fixed(TWICE) == "0.7646"


def test_scores_are_rounded_once() -> None:
    """1.23456 has four digits 1.235, and two decimals of those would be 1.24."""
    assert blocks.score_texts([12.345678, 1.23456]) == ["12.35", "1.23"]
    assert blocks.score_texts([9.99996, 1.0]) == ["10.000", "1.000"]
    assert blocks.score_texts([-0.0, 1e20]) == ["-0", "1e+20"]
    assert blocks.score_texts([]) == []
    assert blocks.score_texts([123.4, 5.678]) == ["123.4", "5.7"]
    assert blocks.score_texts([1e-7, 2e-8]) == ["1e-07", "2e-08"]
