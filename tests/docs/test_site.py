"""The site: every page stands in its contents once, and every link and anchor leads somewhere. Sphinx is not needed."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from itertools import pairwise

import pytest

from docs.generate import DOCS, ROOT, pages
from docs.generate.project import PROJECT
from docs.generate.site import FOLDERS, UNLISTED, children, contents, index, llms, within_site

pytestmark = pytest.mark.slow

WRITTEN = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if path.relative_to(DOCS).parts[0] not in (*FOLDERS, "_build")
)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(path: str) -> str:
    """A page as the site has it."""
    text = index() if path == "index.md" else pages().get(path) or (DOCS / path).read_text(encoding="utf-8")
    return within_site(text, path.removesuffix(".md"))


def anchors(text: str) -> set[str]:
    """What GitHub and MyST call the headings."""
    heads = re.findall(r"^#{1,4} (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    found: Counter[str] = Counter()
    names = set()
    for head in heads:
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head).lower()).replace(" ", "-")
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names


def faults(path: str) -> list[str]:
    """The links of a page that lead nowhere."""
    wrong = []
    for link in LINK.findall(CODE.sub("", text_of(path))):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
        is_page = there in pages() or (there.endswith(".md") and (DOCS / there).is_file())
        exists = is_page or (DOCS / there).exists()
        if not exists or (anchor and not (is_page and anchor in anchors(text_of(there)))):
            wrong.append(link)
    return wrong


def test_every_page_stands_in_the_contents_once() -> None:
    listed = [f"{name}.md" for names in contents().values() for name in names]
    below = [posixpath.join(posixpath.dirname(page), f"{name}.md") for page in listed for name in children(page[:-3])]
    unlisted = [f"{name}.md" for name in UNLISTED]
    assert Counter([*listed, *below, *unlisted]) == Counter([*WRITTEN, *pages()]) - Counter(["index.md"])


@pytest.mark.parametrize("path", WRITTEN)
def test_links_of_written_pages_lead_somewhere(path: str) -> None:
    assert faults(path) == []


def test_links_of_generated_pages_lead_somewhere() -> None:
    assert {path: wrong for path in pages() if (wrong := faults(path))} == {}


def test_pages_of_the_project_are_pages_of_the_site() -> None:
    assert all((ROOT / path).is_file() for path in PROJECT)
    assert "](project/contributing.md)" in text_of("index.md")
    assert "](project/contributing.md#how-it-is-tested)" in text_of("metrics.md")


def test_llms_txt_names_every_section_and_page() -> None:
    text = llms()
    assert text.startswith("# groupgt\n\n> groupgt measures retrieval")
    for title, names in contents().items():
        assert f"\n## {title}\n" in text
        assert all(f"]({name}.html): " in text for name in names)


@pytest.mark.parametrize("path", sorted([*WRITTEN, *pages()]))
def test_headings_skip_no_level(path: str) -> None:
    text = re.sub(r"^```.*?^```", "", text_of(path), flags=re.MULTILINE | re.DOTALL)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1
    assert all(level <= before + 1 for before, level in pairwise(levels)), levels
