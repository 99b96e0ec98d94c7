"""What a built site must hold to, asked of its HTML: `python -m tests.docs.built FOLDER`, after Sphinx has built it.

No page loads anything from elsewhere, every link and anchor within the site leads somewhere, formulas are MathML, and
axe-core finds nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tests import browser

# What a browser fetches by itself, by tag: the attributes that say from where.
LOADS = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "use": ("href", "xlink:href"),
    "link": ("href",),
}
# Links of a head that are followed by readers alone.
FOLLOWED = {"canonical", "next", "prev", "search", "index", "help", "license", "alternate"}
ELSEWHERE = re.compile(r"(?:[a-z]+:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')]+)", re.IGNORECASE)


@dataclass
class Page(HTMLParser):
    """One page: what it loads, where its links lead, the names of its places, and how many formulas it has."""

    text: str
    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    tags: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)
        self.loads += IN_STYLES.findall("".join(re.findall(r"<style.*?</style>", self.text, re.DOTALL)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.ids |= {held[name] for name in ("id", "name") if held.get(name)}
        if tag == "a" and "href" in held:
            self.links.append(held["href"])
        if tag != "link" or held.get("rel", "") not in FOLLOWED:
            self.loads += [held[name] for name in LOADS.get(tag, ()) if name in held]


def faults(folder: Path) -> list[str]:
    """What is wrong with a site, each with the page it is on."""
    paths = sorted(folder.rglob("*.html"))
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in paths}
    places = {path.resolve(): page.ids for path, page in pages.items()}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        wrong += [f"{name} loads {source}" for source in page.loads if ELSEWHERE.match(source)]
        wrong += [f"{name} links to {link}" for link in page.links if not _leads(link, path.resolve(), places)]
    for path in sorted(folder.rglob("*.css")):
        found = IN_STYLES.findall(path.read_text(encoding="utf-8"))
        wrong += [f"{path.relative_to(folder).as_posix()} loads {source}" for source in found]
    if not any(page.tags["math"] for page in pages.values()):
        wrong.append("no page has a formula in MathML")
    return wrong


def _leads(link: str, path: Path, places: dict[Path, set[str]]) -> bool:
    if ELSEWHERE.match(link) or link.startswith("mailto:"):
        return True
    target, _, anchor = unquote(link).partition("#")
    there = Path(os.path.normpath(path.parent / target.partition("?")[0])) if target else path
    return (anchor in places[there] if anchor else True) if there in places else there.exists()


def inaccessible(folder: Path) -> list[str]:
    """What axe-core finds on every third page, light and dark in turn; nothing without a browser or axe-core."""
    axe = Path(os.environ.get("GROUPGT_NODE", "")) / "axe-core" / "axe.min.js"
    if browser.found() is None or not axe.is_file():
        print("no browser, or no axe-core: accessibility is not checked")
        return []
    script = axe.read_text(encoding="utf-8")
    wrong = []
    with browser.running() as chromium:
        tab = chromium.tab()
        for number, path in enumerate(sorted(folder.rglob("*.html"))[::3]):
            tab.size(1280, dark=number % 2 == 1)
            tab.call("Page.navigate", url=path.resolve().as_uri())
            tab.wait(f"document.readyState === 'complete' && location.pathname.endsWith({json.dumps(path.name)})")
            tab.run(f"{script};0")
            faults_here = tab.run("axe.run(document).then((all) => all.violations.map((each) => each.id))")
            cut = tab.run("[...document.querySelectorAll('pre')].some((e) => e.scrollWidth > e.clientWidth + 1)")
            name = path.relative_to(folder).as_posix()
            wrong += [f"{name}: {each}" for each in [*faults_here, *(["code is cut"] if cut else [])]]
    return wrong


def main() -> int:
    """Prints what is wrong, or how much there is."""
    folder = Path(sys.argv[1])
    wrong = [*faults(folder), *inaccessible(folder)]
    pages = [Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")]
    links = sum(len(page.links) for page in pages)
    formulas = sum(page.tags["math"] for page in pages)
    print(
        *wrong or [f"{len(pages)} pages, {links:,} links, {formulas} formulas; nothing is loaded from elsewhere"],
        sep="\n",
    )
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main())
