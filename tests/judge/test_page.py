"""The page in a real browser: a query is judged by keys alone, and by mouse; hostile passages stay text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.snapshots import Snapshot

pytest.importorskip("uvicorn", reason="the extra groupgt[judge] is not installed")

from tests.browser import SMALL, Tab
from tests.judge.acts import QUERIES, TEXTS

pytestmark = pytest.mark.slow
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=alert(1)> cars \u202e and more"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    corpus = "".join(
        json.dumps({"doc_id": name, "contents": text}) + "\n" for name, text in {**TEXTS, "<b>x": HOSTILE}.items()
    )
    (tmp_path / "corpus.jsonl").write_text(corpus, encoding="utf-8")
    (tmp_path / "queries.tsv").write_text(
        "".join(f"{qid}\t{text}\n" for qid, text in QUERIES.items()), encoding="utf-8"
    )
    words = ["judge", "queries.tsv", "--corpus", "corpus.jsonl", "--out", "truth.jsonl", "--by", "anna", "--no-browser"]
    process = subprocess.Popen(
        [sys.executable, "-m", "groupgt", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    while not (address := re.search(r"http://\S+", said)):
        line = process.stderr.readline()
        assert line, said
        said += line
    yield address[0]
    process.terminate()
    process.wait(20)
    process.stderr.close()


def opened(tab: Tab, address: str) -> None:
    tab.call("Page.navigate", url="about:blank")
    tab.errors.clear()
    tab.requests.clear()
    tab.call("Page.navigate", url=address)
    tab.wait("document.getElementById('query') !== null")


def press(tab: Tab, key: str, until: str, *, shift: bool = False) -> None:
    tab.press(key, shift=shift)
    tab.wait(until)


def state(doc: str) -> str:
    card = f"[...document.querySelectorAll('.card')].find((each) => each.innerText.startsWith({json.dumps(doc)}))"
    return f"{card}.querySelector('.state').innerText"


def test_a_query_by_keys_alone(tab: Tab, server: str, tmp_path: Path) -> None:
    tab.size(1280)
    opened(tab, server)
    assert tab.run("location.hash") == ""
    docs = [text.splitlines()[0] for text in tab.texts(".card .head")]
    press(tab, "n", f"{state(docs[0])} === 'group 1'")
    press(tab, "1", f"{state(docs[1])} === 'group 1'")
    press(tab, "n", f"{state(docs[2])} === 'group 2'")
    press(tab, "0", f"{state(docs[3])} === 'not relevant'")
    press(tab, "k", f"document.querySelector('[aria-current] .name').innerText === {json.dumps(docs[3])}")
    press(tab, "2", f"{state(docs[3])} === 'group 2'")
    press(tab, "1", f"{state(docs[3])} === 'groups 1 and 2'")
    press(tab, "u", f"{state(docs[3])} === 'group 2'")
    press(tab, "#", "true")
    tab.call("Input.dispatchKeyEvent", type="keyDown", key='"', code="Digit2", modifiers=8)
    tab.wait(f"{state(docs[3])} === 'group 2, grade 2'")
    press(tab, "x", f"{state(docs[3])} === 'group 3, grade 2'")
    press(tab, "m", "document.getElementById('dialog').open")
    press(tab, "1", f"{state(docs[3])} === 'group 1, grade 2'")
    press(tab, "?", "document.getElementById('dialog').open")
    press(tab, "Escape", "!document.getElementById('dialog').open")
    press(tab, "/", "document.getElementById('search') !== null")
    tab.type("pets")
    tab.wait("document.querySelector('#found .card') !== null")
    press(tab, "Escape", "!document.getElementById('dialog').open")
    press(tab, "Enter", "document.getElementById('notice').innerText.includes('not judged')")
    press(tab, "0", "document.getElementById('progress').innerText.startsWith('1 of 3')")
    assert tab.errors == []
    row = json.loads((tmp_path / "truth.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert row["retrieval_gt"] == [[docs[0], docs[1], {"id": docs[3], "grade": 2}], [docs[2]]]
    assert set(row["nonrelevant"]) == set(docs[4:])
    own = server.partition("#")[0]
    assert [url for url in tab.requests if not url.startswith((own, "data:"))] == []


def test_a_query_by_mouse_and_marked_words(tab: Tab, server: str, tmp_path: Path) -> None:
    tab.size(390, 800, dark=True)
    opened(tab, server)
    doc = tab.text("[aria-current] .name")
    tab.click("[aria-current] .acts button")
    tab.wait("document.querySelector('.own li') !== null")
    tab.click(".own ul button")
    text = "document.querySelector('[aria-current] .text').firstChild"
    tab.run(f"getSelection().setBaseAndExtent({text}, 2, {text}, 9)")
    tab.press("s")
    tab.wait("document.querySelector('mark') !== null")
    assert tab.text("mark") == TEXTS.get(doc, HOSTILE)[2:9]
    tab.click(".own .head button")
    tab.wait("document.getElementById('group-name') !== null")
    tab.type("fares")
    tab.press("Enter")
    tab.wait("document.querySelector('.own b').innerText === 'fares'")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    lines = (tmp_path / "truth.journal" / "anna.jsonl").read_text(encoding="utf-8").splitlines()
    acts = [json.loads(line) for line in lines]
    assert [act["act"] for act in acts] == ["begin", "open", "group", "relevant", "group"]
    assert acts[3]["span"] == [2, 9]
    tab.size(1280)


def test_hostile_passages_stay_text(tab: Tab, server: str) -> None:
    opened(tab, server)
    tab.press("q")
    tab.wait("document.querySelectorAll('.queue button').length === 3")
    tab.run("document.querySelectorAll('.queue button')[2].click()")
    tab.wait("document.getElementById('query').innerText.includes('cars')")
    tab.run("[...document.querySelectorAll('.card button')].find((each) => each.innerText === '<b>x')?.click()")
    tab.wait("document.querySelector('[aria-current] .text').innerText.includes('<script>')")
    assert "<U+202E>" in tab.text("[aria-current] .text")
    assert tab.run("document.title") == "Judge · groupgt"
    assert tab.count("main img, main script") == 0
    assert tab.errors == []


def test_the_address_without_its_token_shows_nothing(tab: Tab, server: str, snapshot: Snapshot) -> None:
    tab.call("Page.navigate", url="about:blank")
    tab.call("Storage.clearDataForOrigin", origin=server.partition("/#")[0], storageTypes="all")
    target = tab.browser.tab()
    target.call("Page.navigate", url=server.partition("#")[0])
    target.wait("document.querySelector('h1')?.innerText === 'This address is not complete'")
    snapshot(target.text("main"))
    # The same for a token of another session.
    target.call("Page.navigate", url="about:blank")
    target.call("Page.navigate", url=server.partition("#")[0] + "#of-yesterday")
    target.wait("document.querySelector('h1')?.innerText === 'This address is not complete'")


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_ids_keep_both_ends_and_targets_are_large(tab: Tab, server: str, width: int) -> None:
    tab.size(width)
    opened(tab, server)
    press(tab, "n", "document.querySelector('.own li') !== null")
    assert tab.run(SMALL) == []
    # Two passages of one article, as the list of a group names them.
    start = "support/refund-policy/article-0260/very/long/path/segment-sections"
    ids = [f"{start}#chunk-{place:02}" for place in range(2)]
    shown = tab.run(f"{json.dumps(ids)}.map((id) => named(id, 60).textContent)")
    assert [len(each) for each in shown] == [60, 60]
    assert shown == [f"{each[:30]}…{each[-29:]}" for each in ids]


@pytest.mark.parametrize("width", [1280, 390])
def test_the_bar_stays_in_sight(tab: Tab, server: str, width: int) -> None:
    tab.size(width, 500)
    opened(tab, server)
    bar = "document.querySelector('.bottom').getBoundingClientRect()"
    card = "document.querySelector('[aria-current]').getBoundingClientRect()"
    for place in ("0", "document.body.scrollHeight"):
        tab.run(f"scrollTo(0, {place})")
        assert tab.run(f"{bar}.top > 0 && {bar}.bottom <= innerHeight + 1")
    # The passage in focus is not behind it.
    for key in "jjjjkk":
        tab.press(key)
        assert tab.run(f"{card}.bottom <= {bar}.top || {card}.height > {bar}.top - 60")
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert tab.texts(".bottom button") == ["Next query Enter", "Undo u", "Skip -", "No answer a", "Search /"]
    tab.size(1280)


def test_a_query_without_an_answer(tab: Tab, server: str, tmp_path: Path) -> None:
    opened(tab, server)
    press(tab, "n", "document.querySelectorAll('.own li').length === 2")
    press(tab, "a", "document.getElementById('notice').innerText.includes('has relevant passages')")
    press(tab, "u", "document.querySelector('.own li') === null")
    press(tab, "a", "document.getElementById('query').innerText.includes('cabin')")
    row = json.loads((tmp_path / "truth.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (row["qid"], row["retrieval_gt"], row["answerable"]) == ("q1", [], False)
    assert len(row["nonrelevant"]) > 2
    # It can be taken back.
    tab.press("q")
    tab.wait("document.querySelectorAll('.queue button').length === 3")
    tab.run("document.querySelectorAll('.queue button')[0].click()")
    tab.wait("document.querySelector('main').innerText.includes('Finished: no answer')")
    press(tab, "u", "!document.querySelector('main').innerText.includes('Finished')")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(tab: Tab, server: str, dark: bool) -> None:
    script = Path(os.environ.get("GROUPGT_NODE", "")) / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("axe-core is not installed: npm install axe-core, and set GROUPGT_NODE to its node_modules")
    tab.size(1280, dark=dark)
    opened(tab, server)
    tab.run(script.read_text(encoding="utf-8") + "\n;true")
    tab.press("n")
    tab.wait("document.querySelector('.own li') !== null")
    for key in ("", "?", "q", "/"):
        if key:
            tab.press(key)
            tab.wait("document.getElementById('dialog').open")
        found = tab.run(
            "axe.run(document).then((all) => all.violations.map((each) => each.id + ' ' + each.nodes[0].html))"
        )
        assert found == []
        if key:
            tab.press("Escape")
            tab.wait("!document.getElementById('dialog').open")
