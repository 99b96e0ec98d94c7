"""The site as a whole: its contents, links that lead out of `docs`, and `llms.txt`. `index.md` lists the pages."""

from __future__ import annotations

import posixpath
import re

from docs.generate import DOCS, pages
from docs.generate.project import PROJECT

# The folders that hold generated pages.
FOLDERS = ("reference", "project")
LINK = re.compile(r"(?<=\]\()([^)\s#]+)")
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)\s]+)\):? *(.*)$", re.MULTILINE)
# Pages for those who change groupgt: reached by links, not from the contents.
UNLISTED = ("project/contributing", "project/releasing")
# Where the generated pages are listed in `index.md`.
MARK = "<!-- generated pages -->"


def index() -> str:
    """Return `index.md` with the generated reference pages in its list."""
    made = pages()
    tops = [name for name in made if name.startswith("reference/") and name.count("/") - name.count("/index.md") == 1]
    entries = [f"- [{made[name].splitlines()[0].removeprefix('# ')}]({name}): {_summary(made[name])}" for name in tops]
    return (DOCS / "index.md").read_text(encoding="utf-8").replace(MARK, "\n".join(entries))


def _summary(text: str) -> str:
    """Return the first sentence of a page, without links."""
    first = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split("\n\n")[1].split()))
    return re.split(r"(?<=\.) ", first)[0]


def entries() -> dict[str, list[tuple[str, str, str]]]:
    """Return the sections of `index.md`: title, path below `docs` and summary of each page."""
    sections = re.split(r"^## (.*)$", within_site(index(), "index"), flags=re.MULTILINE)[1:]
    return {title: ENTRY.findall(text) for title, text in zip(sections[::2], sections[1::2])}


def contents() -> dict[str, list[str]]:
    """Return the names of the pages in each section, without endings."""
    return {title: [path.removesuffix(".md") for _, path, _ in listed] for title, listed in entries().items()}


def children(docname: str) -> list[str]:
    """Return the pages below a page that is the index of its folder."""
    folder, _, name = docname.rpartition("/")
    if name != "index" or not folder:
        return []
    return [
        path.removeprefix(f"{folder}/").removesuffix(".md")
        for path in pages()
        if posixpath.dirname(path) == folder and path != f"{docname}.md"
    ]


def within_site(text: str, docname: str) -> str:
    """Replace links to files outside `docs` that are pages of the site."""
    folder = posixpath.dirname(docname)

    def target(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        page = PROJECT.get(path)
        return posixpath.relpath(page, folder or ".") if page else match[1]

    return LINK.sub(target, text)


def llms() -> str:
    """Return `llms.txt`, which lists the pages with one line each (https://llmstxt.org)."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    title, summary = text.split("\n\n")[:2]
    parts = [title, "> " + " ".join(summary.split())]
    for section, listed in entries().items():
        lines = [f"- [{name}]({path.removesuffix('.md')}.html): {told}" for name, path, told in listed]
        parts += [f"## {section}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"
