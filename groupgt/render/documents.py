"""Several tables with text between them, as one document in the style of the tables."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

from groupgt.render import tables

__all__ = ["Block", "Grid", "document"]

Grid = tuple[list[str], list[list[Any]]]
# A table (headers, rows), or a paragraph.
Block = Grid | str

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 sans-serif; margin: 2em; }}
table {{ border-collapse: collapse; margin: 1em 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2em .8em; border-bottom: 1px solid #ddd; text-align: left; }}
</style></head>
<body>
{body}
</body>
</html>"""


def document(blocks: Sequence[Block], style: str, title: str = "") -> str:
    """Tables drawn in a tabulate format; paragraphs stand between them as the format has text.

    >>> print(document(["a & b", (["run", "map"], [["x", 0.5]])], "github"))
    a & b
    <BLANKLINE>
    | run   |    map |
    |-------|--------|
    | x     | 0.5000 |
    """
    parts = [_text(each, style) if isinstance(each, str) else tables.table(*each, style) for each in blocks]
    if style.startswith("latex"):
        parts = [part if isinstance(each, str) else _typeset(part) for each, part in zip(blocks, parts)]
    if style == "latex_booktabs":
        parts.insert(0, r"% needs \usepackage{booktabs}")
    body = "\n\n".join(parts)
    return PAGE.format(title=html.escape(title), body=body) if style == "html" else body


def _typeset(table: str) -> str:
    """A LaTeX table with minus signs for hyphens, raised marks, and no character that it has no font for.

    >>> _typeset(r"dense & -0.0312* & – & +∞")
    'dense & $-$0.0312$^{*}$ & -- & +$\\\\infty$'
    """
    table = re.sub(r"(?<![\w$])-(?=[0-9∞])", "$-$", table)
    table = re.sub(r"(?<=[0-9])\*", "$^{*}$", table)
    return table.replace("–", "--").replace("∞", r"$\infty$")


def _text(text: str, style: str) -> str:
    if style == "html":
        return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"
    if style.startswith("latex"):
        return re.sub("^", "% ", text, flags=re.MULTILINE)
    return text
