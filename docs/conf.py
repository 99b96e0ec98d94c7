"""How Sphinx builds the site: `python -m sphinx -W -b html docs OUT`, without network at build time or in the page.

The pages are plain Markdown. What only a site has is made here: the contents (from `index.md`), the pages that
`docs.generate` writes from the code, mathematics as MathML, figures on dark ground, and `llms.txt`.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(ROOT))

import groupgt  # noqa: E402
from docs.generate import write  # noqa: E402
from docs.generate.site import FOLDERS, UNLISTED, children, contents, index, llms, within_site  # noqa: E402

project = "groupgt"
version = release = groupgt.__version__
extensions = ["myst_parser"]
exclude_patterns = ["generate", "figures"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_theme = "furo"
html_title = f"groupgt {version}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_copyright = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
# The blocks of a console show commands as typed; prompts of other languages are not to be guessed.
highlight_language = "none"
suppress_warnings = ["misc.highlighting_failure"]


def _math(block: bool) -> Any:
    """A visitor that writes a formula as MathML, which browsers draw themselves."""

    def visit(translator: Any, node: nodes.Element) -> None:
        from docutils.utils.math.latex2mathml import tex2mathml

        markup = tex2mathml(node.astext(), as_block=block)
        translator.body.append(f'<div class="math">{markup}</div>' if block else markup)
        raise nodes.SkipNode

    return visit


def _contents(names: list[str], caption: str = "") -> str:
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(names) + "\n```\n"


def _add_contents(app: Any, docname: str, source: list[str]) -> None:
    """Behind the lists of a page, which anyone can read, the same as contents for the sidebar."""
    text = within_site(index() if docname == "index" else source[0], docname)
    if docname == "index":
        text += "".join(_contents(names, f":caption: {title}\n") for title, names in contents().items())
    elif below := children(docname):
        text += _contents(below)
    elif docname in UNLISTED:
        text = f"---\norphan: true\n---\n{text}"
    source[0] = text


def _add_dark_figures(app: Any, doctree: nodes.document) -> None:
    """A figure that has a brother for dark ground is shown as both, of which the theme chooses one."""
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir, app.env.docname).parent / image["uri"]
        dark = path.with_name(f"{path.stem}-dark{path.suffix}")
        if dark.is_file():
            other = image.deepcopy()
            other["uri"] = str(Path(image["uri"]).with_name(dark.name).as_posix())
            image["classes"].append("only-light")
            other["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, other)


# What the theme lacks for readers with a keyboard or a screen reader, by what it writes in its place.
ACCESSIBLE = (
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    ('<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Contents">'),
    ('<aside class="toc-drawer">', '<aside class="toc-drawer" aria-label="On this page">'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<th class="head"><p></p></th>', "<td></td>"),
    ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">'),
)


def _make_accessible(app: Any, failed: Exception | None) -> None:
    """Add what axe-core asks for to every page."""
    if failed is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for before, after in ACCESSIBLE:
            text = text.replace(before, after)
        path.write_text(text, encoding="utf-8")


def _add_llms(app: Any, failed: Exception | None) -> None:
    if failed is None and app.builder.format == "html":
        (Path(app.outdir) / "llms.txt").write_text(llms(), encoding="utf-8")


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    for name in FOLDERS:
        shutil.rmtree(DOCS / name, ignore_errors=True)
    write(DOCS)
    app.add_html_math_renderer("mathml", (_math(block=False), None), (_math(block=True), None))
    # What it lists is not in the file.
    app.connect("env-get-outdated", lambda *_: ["index"])
    app.connect("source-read", _add_contents)
    app.connect("doctree-read", _add_dark_figures, priority=100)
    app.connect("build-finished", _add_llms)
    app.connect("build-finished", _make_accessible)
