"""Render items, such as a verdict, tables and notes, in reading order and in any table format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupgt.errors import printable
from groupgt.records import record
from groupgt.render import layout, tables
from groupgt.render.bars import BarTable, Limits
from groupgt.render.entries import Entries
from groupgt.render.layout import PAPER, Screen
from groupgt.render.tables import Grid, Table
from groupgt.runtime import html

if TYPE_CHECKING:
    from groupgt.render.page.data import Sentence

# A table (headers, rows), or a paragraph.
Block = Grid | Table | str
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
# Signs that stand out more among comments.
EMOJI = {"■": "⛔"}
# Beginning and end of a name while a sentence is wrapped: characters without width, which `printable` escapes in text.
OPENS, CLOSES = "\u2066", "\u2069"
COLORS = {"■": "red", "▼": "red", "▲": "green", "✓": "green", "○": "bold"}


@record
class Heading:
    """The title of everything that follows, or of a part if its level is 3 or more."""

    text: str
    level: int = 2


@record
class Verdict:
    """The conclusions, one per sentence."""

    sentences: Sequence[Sentence]


@dataclass(frozen=True)
class Card:
    """A conclusion with a badge (a sign and a word), a sentence whose every second part is a name, and lines below."""

    sign: str
    word: str
    sentence: Sequence[str]
    lines: Sequence[str]


@record
class Folded:
    """Items that Markdown folds below a title."""

    title: str
    items: Sequence[Table | str]


@record
class Foot:
    """The last line. If a terminal hides details, this line also names them and says how to see them."""

    text: str
    details: str = "details"


@record
class Detail:
    """An item that is shown only on request but always written to files."""

    item: Grid | Bare


Bare = Table | BarTable | Limits | Entries | Card | Verdict | Heading | Folded | Foot | str
Item = Grid | Bare | Detail


def document(items: Iterable[Item], style: str = tables.DEFAULT, title: str = "", screen: Screen = PAPER) -> str:
    """Render items in a tabulate format. `screen` applies only to the default format."""
    # Details must be requested, and verdicts must not be empty.
    asked = [bare(item) for item in items if screen.details or not isinstance(item, Detail)]
    asks = style == tables.DEFAULT and not screen.details
    shown = [item for item in asked if not isinstance(item, Verdict) or item.sentences]
    shown = [item for item in shown if not isinstance(item, Foot) or item.text or asks]
    if style == tables.DEFAULT:
        return "\n\n".join(_on_screen(shown, screen))
    parts = [rendered(item, style) for item in shown]
    if style.startswith("latex"):
        parts = [_typeset(part) if isinstance(item, Table) else part for item, part in zip(shown, parts)]
    if style == "latex_booktabs":
        parts.insert(0, r"% needs \usepackage{booktabs}")
    body = "\n\n".join(parts)
    return PAGE.format(title=html.escape(printable(title)), body=body) if style == "html" else body


def bare(item: Item) -> Bare:
    """Return the item with every grid as a `Table`. A `Detail` is unwrapped."""
    item = item.item if isinstance(item, Detail) else item
    return Table(*item) if isinstance(item, tuple) else item


def sentence_text(sentence: Sentence) -> str:
    """Join a verdict sentence into one line, with a prefix for failures and warnings."""
    start = {"failed": "FAILED: ", "doubt": "warning: "}.get(sentence["kind"], "")
    return start + "".join(sentence["parts"])


def typeset(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return sentences with real minus signs, but leave names unchanged."""
    return [
        {**each, "parts": [part if place % 2 else tables.minus(part) for place, part in enumerate(each["parts"])]}
        for each in sentences
    ]


def _card_text(card: Card, style: str) -> str:
    """Render a card. In Markdown, a card is a heading and paragraphs, with real minus signs."""
    sentence = "".join(card.sentence)
    if style not in tables.MARKDOWN:
        first = f"{card.sign} {card.word.upper()}: {sentence}" if card.word else sentence
        return "\n".join([first, *card.lines])
    if card.word:
        # A name keeps its first letter.
        sentence = sentence if not card.sentence[0] else sentence[0].lower() + sentence[1:]
        sentence = f"{EMOJI.get(card.sign, card.sign)} {card.word}: {sentence.removesuffix('.')}"
    lines = [tables.minus(tables.markdown(line)) for line in card.lines]
    return "\n\n".join([f"### {tables.markdown(sentence)}", *lines])


def rendered(item: Bare, style: str) -> str:
    """Render a table, verdict, heading or text in a tabulate format."""
    if isinstance(item, Folded):
        inside = [rendered(each, style) for each in item.items]
        if style in tables.MARKDOWN:
            summary = f"<details><summary>{html.escape(printable(item.title))}</summary>"
            return "\n\n".join([summary, *inside, "</details>"])
        return "\n\n".join([rendered(item.title, style), *inside])
    if isinstance(item, (BarTable, Limits, Entries)):
        item = item.other
    if isinstance(item, Table):
        return tables.table(item.labels, item.rows, style)
    if isinstance(item, Card):
        if style in tables.MARKDOWN:
            return printable(_card_text(item, style))
        item = _card_text(item, style)
    plain = item.text if isinstance(item, (Heading, Foot)) else item
    if isinstance(plain, Verdict) and style in tables.MARKDOWN:
        plain = Verdict(typeset(plain.sentences))
    text = printable("\n".join(map(sentence_text, plain.sentences)) if isinstance(plain, Verdict) else plain)
    if style == "html":
        return f"<p>{html.escape(text).replace(chr(10), '<br>')}</p>"
    if style.startswith("latex"):
        return re.sub("^", "% ", text, flags=re.MULTILINE)
    if style in tables.MARKDOWN:
        text = tables.markdown(text)
        if isinstance(item, Heading):
            return f"{'#' * item.level} {text}"
        return "\n".join(f"- {line}" for line in text.split("\n")) if isinstance(item, Verdict) else text
    return text


def _on_screen(items: Sequence[Bare], screen: Screen) -> Iterator[str]:
    """Yield items in the default format, fitted to the screen width, followed by a list of hidden columns."""
    left_out: list[str] = []
    for item in items:
        if isinstance(item, Verdict):
            yield "\n".join(_sentence(sentence, screen) for sentence in item.sentences)
        elif isinstance(item, Card):
            yield _card(item, screen)
        elif isinstance(item, (BarTable, Limits, Entries)):
            yield item.lines(screen)
        elif isinstance(item, Folded):
            yield from _on_screen([item.title, *item.items], screen)
        elif isinstance(item, Foot):
            parts = [printable(item.text), "" if screen.details else f"{item.details}: --details"]
            yield layout.flowed(list(filter(None, parts)), screen.width)
        elif isinstance(item, (str, Heading)):
            lines = layout.wrapped(printable(item if isinstance(item, str) else item.text), screen.width).split("\n")
            yield "\n".join(map(layout.paint_line, lines) if screen.color else lines)
        else:
            parts, columns = _parts(item, screen)
            left_out += [column for column in columns if column not in left_out]
            yield "\n\n".join(parts)
    if left_out:
        yield layout.wrapped(f"Hidden columns: {', '.join(left_out)} (--wide shows all)", screen.width)


def _card(card: Card, screen: Screen) -> str:
    """Format a card: the badge before the sentence, and the lines below it."""
    badge = card.word.upper() if screen.is_ascii else f"{card.sign} {card.word.upper()}"
    lead = f"{badge}  " if card.word else ""
    text = lead + _names_in(card.sentence, screen, " " * len(lead), len(lead))
    if lead and screen.color:
        text = layout.painted(badge, COLORS[card.sign]) + text[len(badge) :]
    # A terminal without UTF-8 lacks the dot as well.
    lines = [line.replace(" · ", "; ") if screen.is_ascii else line for line in map(printable, card.lines)]
    return "\n".join([text, *(layout.wrapped(f"  {line}", screen.width, "") for line in lines)])


def _names_in(parts: Sequence[str], screen: Screen, indent: str = "  ", taken: int = 0) -> str:
    """Wrap a sentence and make its names bold. `taken` columns of the first line are already in use."""
    escaped = [printable(part) for part in parts]
    if screen.color:
        escaped = [f"{OPENS}{part}{CLOSES}" if place % 2 and part else part for place, part in enumerate(escaped)]
    opens, closes = layout.painted("|", "bold").split("|")
    text = layout.wrapped("\0" * taken + "".join(escaped), screen.width, indent).removeprefix("\0" * taken)
    return text.replace(OPENS, opens).replace(CLOSES, closes)


def _sentence(sentence: Sentence, screen: Screen) -> str:
    """Format a sentence with bold names, or in a single color for failures and warnings."""
    color = {"failed": "red", "doubt": "yellow"}.get(sentence["kind"])
    if not screen.color or color is not None:
        lines = layout.wrapped(printable(sentence_text(sentence)), screen.width).split("\n")
        return "\n".join(layout.painted(line, color) for line in lines) if screen.color and color else "\n".join(lines)
    return _names_in(sentence["parts"], screen)


def _parts(table: Table, screen: Screen) -> tuple[list[str], list[str]]:
    """Render a table, and split it if it is too wide. Also return the hidden columns."""
    cells = tables.cells_of(table)
    paint = layout.paint_cell if screen.color else str
    width = screen.width
    if width is None or layout.total(cells.widths(layout.ROOM)) <= width:
        return [layout.rendered(cells, paint)], []
    parts, left_out = layout.fitted(cells, width)
    return [layout.rendered(part, paint, 0) for part in parts], left_out


def _typeset(table: str) -> str:
    """Replace hyphens with minus signs in a LaTeX table, raise marks, and avoid characters missing from LaTeX fonts."""
    table = re.sub(r"(?<![\w$])-(?=[0-9∞])", "$-$", table)
    for mark, raised in ((tables.MARK, "*"), (tables.BETTER, r"\uparrow"), (tables.WORSE, r"\downarrow")):
        table = re.sub(rf"(?<=[0-9]){re.escape(mark)}", lambda _: f"$^{{{raised}}}$", table)  # noqa: B023
    return table.replace("–", "--").replace("∞", r"$\infty$")
