"""Markdown from Python: cells, tables, code, and docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

ARGUMENT = re.compile(r"^    (\w+): ", re.MULTILINE)
# Where the next of several names is explained: "`one`: ….  `other`: …".
TERM = re.compile(r"(?:^|(?<=\.) )(?=`\w+`: )")


def cell(value: object) -> str:
    """Return a text for a cell of a table.

    >>> cell("a|b")
    'a\\\\|b'
    """
    return plain(" ".join(str(value).split())).replace("|", "\\|")


def plain(text: str) -> str:
    """Escape a text so that nothing outside code is markup: no emphasis, no HTML, no mathematics.

    >>> plain("Σ_groups <k> of `a_b`")
    'Σ\\\\_groups \\\\<k> of `a_b`'
    """
    parts = re.split(r"(``.*?``|`[^`]*`)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<$\[\]])", r"\\\1", part) for part in parts)


def code(text: object) -> str:
    """Return text as inline code that also works in tables."""
    escaped = str(text).replace("|", "\\|")
    fence = "``" if "`" in escaped else "`"
    return f"{fence}{escaped}{fence}" if escaped else ""


def block(text: str, language: str = "text") -> str:
    """Return text as a code block."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown."""
    lines = ["| " + " | ".join(headers) + " |", "|" + "---|" * len(headers)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def bullets(items: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {item}" for item in items)


def page(title: str, *parts: str) -> str:
    """Return a page with a title and its nonempty parts."""
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"


def docstring(text: str) -> str:
    """Return a docstring as Markdown: paragraphs, examples as code, and arguments as a list."""
    before, _, arguments = text.partition("\nArgs:\n")
    # Paragraphs that are not indented stand behind the arguments.
    arguments, _, after = re.sub(r"\n{2,}(?=\S)", "\n\0", arguments, count=1).partition("\0")
    parts = _paragraphs(before)
    if arguments.strip():
        pieces = ARGUMENT.split(arguments.rstrip())[1:]
        told = zip(pieces[::2], pieces[1::2])
        parts.append(bullets(f"{code(name)}: {plain(' '.join(meaning.split()))}" for name, meaning in told))
    return "\n\n".join([*parts, *_paragraphs(after)])


def _paragraphs(text: str) -> list[str]:
    """Return paragraphs, with examples and indented text as code."""
    parts = []
    for paragraph in filter(None, re.split(r"\n{2,}", text.strip("\n"))):
        if paragraph.startswith(">>>"):
            parts.append(block(paragraph, "pycon"))
        elif paragraph.startswith("    "):
            parts.append(block(paragraph))
        elif len(terms := list(filter(None, TERM.split(" ".join(paragraph.split()))))) > 2:
            parts.append(bullets(map(plain, terms)))
        else:
            parts.append(plain(" ".join(paragraph.split())))
    return parts
