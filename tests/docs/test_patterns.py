"""Habits that make prose read as translated: how often the written pages have each. The counts may only fall."""

from __future__ import annotations

import re

import pytest

from docs.generate.site import FOLDERS
from tests.docs.blocks import ROOT

NOUNS = "extra|options?|keys?|command|columns?|metrics?|policy|labeller|format|page|function|field|package|parameter"
# The pattern, and how many there are.
PATTERNS = {
    "the noun before its name: 'the option `-k`'": (rf"(?i)\b(?:the|an?|with|of|under) (?:{NOUNS}|convention) `", 0),
    "a blank before a percent sign": (r"\d %", 0),
    "a decimal without its zero": (r"(?<![\d\w.`/])\.\d\d?\b", 0),
    "a semicolon": (r";", 0),
    "a colon within a sentence": (r":\s+[a-z]", 107),
    "'here' or 'there' for a tool or a file": (r"(?i)\b(?:here|there)\b(?! (?:is|are|was|were)\b)", 0),
    "'figures' or 'texts'": (r"(?i)\b(?:figures|texts)\b", 6),
}


def prose() -> str:
    """Return what the pages say, without blocks, comments and tables."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    written = [path for path in paths if not {*path.relative_to(ROOT).parts[1:2]} & {*FOLDERS, "_build"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in written)
    summaries = r"<!-- the summary -->.*?<!-- ends here -->"
    return re.sub(rf"{summaries}|```.*?```|<!--.*?-->|^ *\|.*?$", " ", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("habit", PATTERNS)
def test_a_habit_does_not_spread(habit: str) -> None:
    pattern, limit = PATTERNS[habit]
    text = prose() if pattern.endswith("`") else re.sub(r"`[^`\n]*`", "x", prose())
    found = [text[max(match.start() - 40, 0) : match.end() + 20] for match in re.finditer(pattern, text)]
    assert len(found) <= limit, found
