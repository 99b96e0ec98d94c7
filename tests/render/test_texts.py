"""Numbers, counts, names and phrases as text."""

from __future__ import annotations

import math

from groupgt.comparison.settings import Settings
from groupgt.comparison.systems import finite
from groupgt.model.policy import Policy
from groupgt.render import tables
from groupgt.render.columns import effect_text, level_text, signed_span
from groupgt.render.page.page import _escaped
from groupgt.render.tradeoffs import _both
from groupgt.report import sentences
from groupgt.report.contrasts import described
from groupgt.report.depth import _number
from groupgt.report.means import policy_text
from groupgt.report.misses import _why_never_covered
from groupgt.report.times import cost_text, time_text
from groupgt.results.merge import _apart


def test_numbers() -> None:
    assert [tables.fixed(each) for each in (0.5, None, math.nan, -0.00001)] == ["0.5000", "–", "–", "0.0000"]
    assert [tables.signed(each) for each in (0.5, -0.25, 0.0, math.nan)] == ["+0.5000", "-0.2500", "0.0000", "–"]
    assert [tables.small(each) for each in (0.0312, 0.00001, 0.0, None)] == ["0.0312", "<0.0001", "<0.0001", "–"]
    assert [tables.p_text(each) for each in (0.0312, 0.00001)] == ["p = 0.0312", "p < 0.0001"]
    assert [effect_text(each) for each in (0.251, -math.inf, math.nan)] == ["+0.25", "-∞", "–"]
    assert [finite(each) for each in (0.5, math.nan, math.inf)] == [0.5, None, None]
    assert [cost_text(each) for each in (0.00123456, None)] == ["0.00123", "–"]
    assert [time_text(each) for each in (123.4, 12.34, 0.1234, None)] == ["123", "12.3", "0.123", "–"]
    assert [_number(each) for each in (0.35, 0.1 + 0.2)] == ["0.35", "0.30000000000000004"]
    text = "bm25-2 fell: -0.034, 97.5% CI -0.091 to +0.023"
    assert tables.minus(text) == "bm25-2 fell: −0.034, 97.5% CI −0.091 to +0.023"


def test_intervals() -> None:
    nothing = (math.nan, math.nan)
    assert [tables.span(each) for each in ((0.25, 0.75), nothing, None)] == ["0.2500 to 0.7500", "–", "–"]
    assert [signed_span(each) for each in ((-0.25, 0.75), nothing)] == ["-0.2500 to +0.7500", "–"]
    assert signed_span((-0.0351, 0.1094), 3) == "-0.035 to +0.109"
    assert level_text(1 - 0.05 / 3) == "98.3% CI"


def test_counts() -> None:
    assert [tables.counted(1, "query"), tables.counted(1200, "query")] == ["1 query", "1,200 queries"]
    assert tables.counted(2, "query has", "queries have") == "2 queries have"
    assert [tables.count_text(each) for each in (50, 49.8, 1234.0)] == ["50", "49.8", "1,234"]
    assert [tables.counts_text(each) for each in ([1, 2.3], [1, 2])] == [["1.0", "2.3"], ["1", "2"]]
    assert [tables.range_text(each) for each in ([50, 50], [1234, 50])] == ["50", "50 to 1,234"]
    assert [tables.part_of(0, 1, "group"), tables.part_of(1, 3, "group")] == ["0 of 1 group is", "1 of 3 groups is"]
    assert tables.part_of(2, 3, "query", "needs", "need") == "2 of 3 queries need"


def test_lists() -> None:
    assert [tables.shortlist(each, 2) for each in ("abcd", "ab", "")] == ["a, b and 2 more", "a, b", "nothing"]
    assert tables.shortlist("abcd", 2, ", and {} more") == "a, b, and 2 more"
    assert "".join(sentences.enumerated(["a", "b", "c"], " win.")) == "a, b and c win."
    assert "".join(sentences.enumerated(["a", "b", "c", "d", "e"], " win.")) == "a, b, c and 2 more win."
    assert sentences.appended(["", "a", " needs 3"], "; ", "b", " needs 4") == ["", "a", " needs 3; ", "b", " needs 4"]
    assert sentences.grouped([("odd", 1), ("even", 2), ("odd", 3)]) == {"odd": [1, 3], "even": [2]}
    assert _both(["k1 of bm25", "b of bm25"]) == "k1 and b of bm25"
    assert _both(["k1 of bm25", "k of rrf"]) == "k1 of bm25 and k of rrf"


def test_phrases() -> None:
    assert [sentences.at_cutoff(each) for each in (10, "2000tokens", None)] == [" at 10", " at 2000tokens", ""]
    assert [sentences.every(count, "gate") for count in (1, 2, 3)] == ["The gate", "Both gates", "All 3 gates"]
    assert [policy_text(each) for each in (Policy(), Policy(missing="skip"))] == [
        "default policy",
        "policy missing=skip",
    ]
    assert _apart("missing=zero, ties=id", "missing=skip, ties=id") == ("missing=zero", "missing=skip")
    settings = Settings(test="bootstrap", resamples=2000, seed=7)
    assert described(settings) == "paired bootstrap test, 2,000 resamples, seed 7"
    assert _why_never_covered([], []) == "it has no relevant alternative"
    absent = {"a", "c"}
    assert _why_never_covered([["a"], ["b", "c"]], absent) == "none of its alternatives is in the corpus"


def test_long_and_hostile_text() -> None:
    assert _escaped("a\u202eb") == "a&lt;U+202E&gt;b"
    assert tables.snippet("Thirty days\nof leave", 20) == "Thirty days of leave"
    assert tables.snippet("Thirty days of leave", 12) == "Thirty days…"
    hostile = "fix <b>, ask @ann, see https://a.b or [this](x)"
    assert tables.markdown(hostile) == r"fix &lt;b>, ask @&#8203;ann, see https&#58;//a.b or \[this\](x)"
    # GitHub also finds email addresses with `&#64;`.
    assert tables.markdown("recall@0.5score, mrr@5") == "recall@&#8203;0.5score, mrr@5"
