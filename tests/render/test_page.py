"""The page: one file that runs nothing but its own scripts, keeps texts as texts, and leaves out what does not fit."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from groupgt.render.page import blocks, data, vendored
from groupgt.render.page.blocks import chunks_of, fit, opened
from groupgt.render.page.data import Page
from groupgt.render.page.page import APART, COMMENTS, FOLDER, SCRIPTS, figure_page, page_bytes
from tests.render.samples import dataset, page, samples
from tests.render.typescript import interfaces

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'><img src=x onerror=alert(1)>",
    "]]>",
    "a\u2028b\u2029c",
    "\u202eevil\u2066",
    "\x00\x1b[31m",
    "lone \ud800",
    "x" * 50_000,
)


class Reader(HTMLParser):
    """Elements, and the texts of scripts by id."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.blocks: dict[str, str] = {}
        self.scripts: list[str] = []
        self._inside: dict[str, str | None] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs) if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is None:
            return
        if self._inside.get("id"):
            self.blocks[str(self._inside["id"])] = data
        else:
            self.scripts.append(data)


def read(data: bytes) -> Reader:
    reader = Reader()
    reader.feed(data.decode("utf-8"))
    return reader


def value(reader: Reader, name: str) -> Any:
    return opened(reader.blocks[name].encode())


def test_scripts_are_allowed_by_their_digest_alone() -> None:
    reader = read(page_bytes(page(dataset())))
    policy = next(
        attributes["content"] or ""
        for tag, attributes in reader.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert "unsafe-eval" not in policy
    allowed = set(rules["script-src"].split())
    assert not any("unsafe" in source for source in allowed)
    libraries = [
        zlib.decompress(base64.b64decode(reader.blocks[f"library-{each.package}"])) for each in vendored.LIBRARIES
    ]
    texts = [script.encode() for script in reader.scripts] + libraries
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in texts}
    assert digests == allowed
    assert len(reader.scripts) == len(SCRIPTS)


def test_a_page_holds_code_without_its_comments() -> None:
    scripts = read(page_bytes(page(dataset()))).scripts
    for name, script in zip(SCRIPTS, scripts, strict=True):
        lines = (FOLDER / "scripts" / f"{name}.js").read_text(encoding="utf-8").splitlines()
        code = [line for line in lines if not re.match(r"\s*(//|/?\*(?!.*\*/ *\S))", line)]
        assert [re.sub(r"/\*.*?\*/ ?", "", line) for line in code] == script.splitlines()


def test_code_between_comments_is_kept() -> None:
    text = b"/** @type {Plain} */ (x).y = 1;\nconst kept = 2;\n/** A\n * doc. */\nconst z = 3; /* so */\n// all\n"
    assert COMMENTS.sub(b"", text) == b"(x).y = 1;\nconst kept = 2;\nconst z = 3; \n"


def test_nothing_is_referred_to_and_nothing_listens_inline() -> None:
    reader = read(page_bytes(page(dataset())))
    for tag, attributes in reader.tags:
        assert tag not in ("iframe", "object", "embed", "img", "base", "form"), tag
        for name, text in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href"):
                assert text == "data:,", (tag, text)


def test_own_scripts_hold_no_markup_and_no_way_to_run_text() -> None:
    for name in SCRIPTS:
        text = (FOLDER / "scripts" / f"{name}.js").read_text(encoding="utf-8")
        assert text.startswith("//")
        assert '"use strict";' in text
        for bad in (
            "</script",
            "<!--",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "fetch(",
        ):
            assert bad not in text, (name, bad)
        assert "new Function" not in text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_texts_of_users_stay_texts(text: str) -> None:
    own = dataset()
    own["name"] = own["systems"][0]["name"] = own["questions"]["qids"][0] = text
    own["questions"]["texts"][0] = text
    own["decision"]["sentence"] = [text, text, text]
    own["standings"]["rows"][0]["name"] = own["standings"]["rows"][0]["base"] = text
    own["facts"] = [(text, text)]
    for detail in own["details"]:
        detail.names[0] = text
        detail.important.add(text)
    own["passages"] = {text: text}
    plain, hostile = read(page_bytes(page(dataset(passages={"d0": "zero"})))), read(page_bytes(page(own, title=text)))
    # The same elements, whatever texts say.
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert value(hostile, "page")["title"] == text
    assert value(hostile, "questions-0")["qids"][0] == text
    assert text in value(hostile, "passages-0-0")


def test_what_the_blocks_hold() -> None:
    reader = read(page_bytes(page(dataset(passages={"d0": "zero", "y": "why", "x1-0": "one"}))))
    assert value(reader, "values-0-0")["cells"] == [[0, 1, 2, 0], [1, 2, 0, 1]]
    question, groups, ids, homes, rankings, worked = value(reader, "details-0-0")[0]
    assert (question, worked) == (0, [["1 / 1"], ["1 / 1"]])
    assert ids == ["d0", "x0-0", "y", "x0-1"]
    assert homes == [0, -1, 0, -1]
    assert groups == [["group 1", 1, [[0, 1]]]]
    assert rankings[0] == [3, [1, 0, 2], ["3.000", "2.000", "1.000"], [[2, 0, [0]]], {}]
    assert value(reader, "passages-0-0") == {"d0": "zero"}
    assert value(reader, "others-0-0") == {"y": "why", "x1-0": "one"}
    assert value(reader, "page")["datasets"][0]["chunks"] == [[0, 1, 2, 3]]


def test_a_passage_that_comes_to_matter_is_kept_with_those_that_do() -> None:
    own = dataset(questions=2 * blocks.BLOCK_QUERIES, passages={"d50": "fifty"})
    own["details"][0].names[1] = "d50"
    reader = read(page_bytes(page(own)))
    assert value(reader, "others-0-0") == {"d50": "fifty"}
    assert value(reader, "passages-0-1") == {"d50": "fifty"}
    row = next(row for row in value(reader, "details-0-1") if row[0] == 50)
    assert row[3][row[2].index("d50")] == 1


def test_all_that_is_time_stands_on_one_line() -> None:
    first, second = page(dataset()), page(dataset())
    second["times"] = {**second["times"], "made": "2027", "systems": {"set": {"system 0": [1.0]}}}
    lines = list(zip(page_bytes(first).split(b"\n"), page_bytes(second).split(b"\n")))
    other = [one for one, two in lines if one != two]
    assert len(other) == 1
    assert other[0].startswith(b'<script type="text/plain" id="times">')


def test_the_page_says_the_verdict_without_a_script() -> None:
    decision = {"badge": "Better", "sentence": ["", "a<b", " is best."], "evidence": ["+0.1", "p = 0.01"], "note": "?"}
    own = dataset(decision=decision, notes=[{"kind": "loss", "parts": ["worse than ", "c", "."]}])
    text = page_bytes(page(own, title="tests & more")).decode()
    assert "<title>tests &amp; more · groupgt</title>" in text
    assert "<p><b>Better</b> <b><bdi>a&lt;b</bdi></b> is best.</p>" in text
    assert "<p>+0.1 · p = 0.01</p>\n<p>?</p>\n<p>worse than <b><bdi>c</bdi></b>.</p>" in text
    cells = "<td class='number'>0.5000</td><td class='number'>0.2500 to 0.7500</td>"
    assert f"<th scope='row'><bdi>system 0</bdi></th>{cells}" in text


def large(questions: int = 200) -> tuple[Page, dict[str, str]]:
    """A page with passages of which most do not matter."""
    import random

    # Texts that do not deflate well.
    draw = random.Random(1)
    texts = {f"d{question}": draw.randbytes(400).hex() for question in range(questions)}
    texts |= {f"x{question}-0": draw.randbytes(400).hex() for question in range(questions)}
    return page(dataset(questions=questions, passages=texts)), texts


@pytest.mark.slow
def test_what_does_not_fit_is_left_out_in_its_order() -> None:
    whole, least = len(page_bytes(large()[0])), len(page_bytes(large()[0], 1))
    told: list[list[str]] = []
    for share in (1.05, 0.9, 0.6, 0.3, 0.1):
        size = least + int((whole - least) * share)
        data = page_bytes(large()[0], size)
        assert len(data) <= size
        reader = read(data)
        left_out = value(reader, "page")["left_out"]
        told.append(left_out)
        for name in reader.blocks:
            if name.startswith(("details", "others", "passages")):
                value(reader, name)
    assert told[0] == []
    assert len(told[1]) == 1
    assert re.fullmatch(r"the text of \d+ results without a hit", told[1][0])
    order = ["results without a hit", "the ends of", "the results of"]
    kinds = [[next(kind for kind in order if kind in text) for text in texts] for texts in told]
    assert kinds[-1] == order
    assert all(own == order[: len(own)] for own in kinds)


def test_questions_that_say_least_are_left_out_first() -> None:
    chunks = chunks_of(large(questions=4 * blocks.BLOCK_QUERIES)[0]["datasets"][0])
    size = sum(chunk.size for chunk in chunks)
    first = chunks[0].places
    told = fit([chunks], size // 6)
    assert sum(chunk.size for chunk in chunks if chunk.kept) <= size // 6
    assert [chunk.kept for chunk in chunks] == sorted((chunk.kept for chunk in chunks), reverse=True)
    assert chunks[0].places == first
    lost = sum(len(chunk.places) for chunk in chunks if not chunk.kept)
    assert told[-1] == f"the results of {lost} queries on which systems differ least"


def test_a_limit_below_the_least_is_said() -> None:
    data = page_bytes(page(dataset()), 1000)
    told = value(read(data), "page")["left_out"]
    assert told[-1].startswith("nothing else, because the page takes up ")
    assert "details-0-0" not in read(data).blocks


def test_an_empty_page_is_small() -> None:
    assert len(page_bytes(page(dataset(questions=1, systems=1)))) < 600_000


def test_a_page_of_one_figure() -> None:
    figure = samples()["deltas"]
    reader = read(figure_page(figure.text, figure.table_html(), figure.template))
    assert value(reader, "figure-data")["template"] == figure.template
    assert sum(tag == "tr" for tag, _ in reader.tags) == 41


def test_libraries_are_what_their_packages_have() -> None:
    for library in vendored.LIBRARIES:
        assert hashlib.sha256(library.path.read_bytes()).hexdigest() == library.sha256, library.package
        assert f"{library.package} {library.version}" in vendored.licenses()
    assert {path.name for path in vendored.FOLDER.iterdir()} == {
        "LICENSES.txt",
        *(library.path.name for library in vendored.LIBRARIES),
    }


@pytest.mark.parametrize("value", [0.1 + 0.2, 1.0, 0.0, 1e-9, 123456789.0, -0.25])
def test_weights_keep_six_digits(value: float) -> None:
    short = blocks.short(value)
    assert abs(short - value) <= 5e-6 * abs(value)
    assert len(repr(short)) <= 12


# What the blocks of the page hold.
TYPES = [data.Overview, data.Times, data.Queries, data.Values]
JUDGE = FOLDER.parents[1] / "judge" / "page" / "judge.js"


@pytest.mark.parametrize("sources", [["scripts/*.js"], ["scripts/base.js", str(JUDGE)]])
def test_sources_are_checked(tmp_path: Path, sources: list[str]) -> None:
    import shutil
    import subprocess

    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("TypeScript, which checks the types of the scripts, is not installed")
    config = tmp_path / "tsconfig.json"
    options = {"allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "target": "es2022", "types": []}
    import json

    libraries = {**options, "lib": ["es2023", "dom", "dom.iterable"]}
    types = tmp_path / "page.d.ts"
    types.write_text(interfaces(TYPES), encoding="utf-8")
    include = [str(types), *(str(FOLDER / source) for source in sources)]
    config.write_text(json.dumps({"compilerOptions": libraries, "include": include}), encoding="utf-8")
    done = subprocess.run([compiler, "-p", str(config)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_scripts_read_all_data_of_the_page() -> None:
    """Except for what the page stores in blocks of its own."""
    scripts = "".join(path.read_text(encoding="utf-8") for path in sorted((FOLDER / "scripts").glob("*.js")))
    kinds = [Page, data.Dataset, data.Questions, data.Times]
    fields = {name for kind in [*kinds, *TYPES] for name in kind.__annotations__}
    assert {name for name in fields if not re.search(rf"\.{name}\b", scripts)} - {"times", *APART} == set()
    of_page: Any = page(dataset())
    made = [of_page, of_page["datasets"][0], of_page["datasets"][0]["questions"], of_page["times"]]
    assert [set(each) for each in made] == [set(kind.__annotations__) for kind in kinds]
