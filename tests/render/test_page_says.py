"""The page shows what the terminal says: sentences, best systems, standings and full numbers come from one place."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.comparison.systems import Systems, interval
from groupgt.render.document import Verdict, sentence_text
from groupgt.render.layout import Strong
from groupgt.render.page.page import page_bytes
from groupgt.render.tables import fixed, minus, p_text, signed
from groupgt.report.comparison import dataset_of
from groupgt.report.contrasts import leaderboards
from groupgt.report.decision import decide
from groupgt.report.standings import standings
from tests.browser import Tab
from tests.render.samples import page

METRICS = ["recall@3", "redundancy@3", "mrr", "complete@2"]


def compared(seed: int) -> Systems:
    """Runs of random systems, compared in a random way."""
    drawn = random.Random(seed)
    truth = {f"q{n}": [["a", "b"], ["c"], ["d"]][: 1 + n % 3] for n in range(drawn.choice([1, 2, 5, 12, 20, 30]))}
    runs = {}
    for name in ("base", "one", "two", "three")[: drawn.randint(2, 4)]:
        skill = drawn.random()
        runs[name] = {
            qid: sorted("abcdxyz", key=lambda each: drawn.random() - skill * (each in "abcd")) for qid in truth
        }
    metrics = drawn.sample(METRICS, drawn.randint(1, 4))
    table = groupgt.compare(
        truth,
        runs,
        metrics,
        by=["n_groups"] if drawn.random() < 0.5 else [],
        resamples=99,
        correction=drawn.choice([None, "none", "bh"]),
        test=drawn.choice(["randomization", "bootstrap"]),
        pairs=drawn.random() < 0.3,
        primary=drawn.choice(metrics),
    )
    return table.by(table.primary)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 10)) for seed in range(100)])
def test_page_and_terminal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("groupgt.render.drawing.has_converter", lambda: False)
    table = compared(seed)
    shown = dataset_of(table, "own")
    card, verdict, *_ = table._teller.blocks()  # type: ignore[attr-defined]
    assert isinstance(verdict, Verdict)
    assert list(map(sentence_text, shown["notes"])) == [minus(sentence_text(each)) for each in verdict.sentences]
    assert card == decide(table).card
    assert shown["decision"]["sentence"] == decide(table).sentence
    board_rows = standings(table)
    assert [row["name"] for row in shown["standings"]["rows"]] == [row.name for row in board_rows]
    for row, each in zip(shown["standings"]["rows"], board_rows):
        assert row["cells"]["mean"] == fixed(table.mean(each.name), 3)
        assert row["marks"]["delta"] == {"better": "▲", "worse": "▼"}.get(table.kind(each.name), "")
        places = [*(row["bar"] or []), *([row["limit"][0]] if row["limit"] else [])]
        assert all(0 <= place <= 100 for place in places)
    names, texts = table.names, list(table.metrics)
    bold = {}
    for board in leaderboards(table):
        for row in board.rows:
            for header, cell in zip(board.headers[1:], row[1:]):
                bold[str(row[0]), header] = isinstance(cell, Strong)
    for place, text in enumerate(texts):
        metric = shown["metrics"][place]
        assert [names[each] for each in metric["best"]] == [name for name in names if bold[name, metric["label"]]]
        assert [each["means"][place] for each in shown["systems"]] == [table.means[name][text] for name in names]
    about = decide(table).system
    assert names[shown["subject"]] == (table.best if about in (None, table.baseline) else about)
    check_contrasts(table, shown)


def check_contrasts(table: Systems, shown: Any) -> None:
    """Every difference of the page is that of the tables, to the last bit, and so is its sentence."""
    names, texts = table.names, list(table.metrics)
    pairs = {(pair.first, pair.second, pair.metric): pair.against for pair in table.pairs}
    seen = 0
    rows = {tuple(row[:4]): row[4:] for row in shown["contrasts"]["rows"]}
    for first, second, metric, within, delta, ends, counts, _, standing, *_ in shown["contrasts"]["rows"]:
        a, b, text = names[first], names[second], texts[metric]
        if b != table.baseline and (a, b, text) not in table.others:
            continue  # the reverse of a row that is checked
        if within < 0 and b == table.baseline:
            each = table.row_of[a, text].against
            assert standing == table.kind(a, text)
        elif within < 0 and pairs:
            each = pairs[a, b, text]
        elif within < 0:
            each = table.others[a, b, text]
        else:
            continue
        assert each is not None
        seen += 1
        assert (delta, ends) == (each.delta, interval(each.delta_interval))
        assert counts == [each.wins, each.ties, each.losses]
        turned = rows[second, first, metric, within]
        assert turned[:3] == [-delta, ends and (-ends[1], -ends[0]), counts[::-1]]
        own = rows[first, second, metric, within]
        for (*_, fields, decision, _, sentence), value in ((own, delta), (turned, -delta)):
            by_name = dict(zip(shown["contrasts"]["names"], fields, strict=True))
            assert by_name["delta"] == minus(signed(value))
            assert by_name["confidence"] == f"{100 * each.confidence:.3g}% CI"
            told = sentence_text(sentence).replace("\u00a0", " ")
            assert f": {minus(signed(value, 3))} in {table.labels[text]} (" in told
            assert math.isnan(each.p_value) or p_text(each.p_value, 3) in told
            assert ("significantly better" in told) == (decision == "better")
    assert seen == len(table.others) + sum(row.against is not None for row in table.rows)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_the_browser_shows_what_it_is_given(seed: int, tab: Tab, tmp_path: Path) -> None:
    table = compared(seed)
    shown = dataset_of(table, "own")
    path = tmp_path / "report.html"
    path.write_bytes(page_bytes(page(shown)))
    tab.size(1280)
    tab.open(path)
    tab.settled()

    def plain(texts: list[str]) -> list[str]:
        return [" ".join(text.split()) for text in texts]

    assert "".join(shown["decision"]["sentence"]) in tab.text(".card .says")
    said = ["".join(each["parts"]) for each in shown["notes"]]
    assert [text.split(" ", 1)[1] for text in plain(tab.texts(".verdict li"))] == plain(said)
    rows = plain(tab.texts(".standings tbody tr:first-child"))
    for row, each in zip(rows, shown["standings"]["rows"], strict=True):
        assert row.startswith(each["base"])
        assert all(text in row for text in each["cells"].values())
    tab.open(path, f"#comparison?a={table.names[1]}&b=base")
    tab.settled()
    primary = [row for row in shown["contrasts"]["rows"] if row[:4] == [1, 0, shown["primary"], -1]]
    assert plain(tab.texts(".verdict.small li"))[0].split(" ", 1)[1] == plain([sentence_text(primary[0][-1])])[0]
    assert tab.errors == []
