"""JUnit XML, which continuous integration reads: the gates of an experiment as tests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr


def junit_text(suite: str, cases: Sequence[tuple[str, str, str | None]]) -> str:
    """One suite; a case has a class, a name, and why it failed or None.

    >>> print(junit_text("gates", [("handbook", "recall@5", "is 0.2"), ("handbook", "mrr", None)]))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites>
      <testsuite name="gates" tests="2" failures="1" errors="0" skipped="0">
        <testcase classname="handbook" name="recall@5">
          <failure message="is 0.2">is 0.2</failure>
        </testcase>
        <testcase classname="handbook" name="mrr"/>
      </testsuite>
    </testsuites>
    """
    failures = sum(why is not None for _, _, why in cases)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        f'  <testsuite name={_quoted(suite)} tests="{len(cases)}" failures="{failures}" errors="0" skipped="0">',
    ]
    for family, name, why in cases:
        start = f"    <testcase classname={_quoted(family)} name={_quoted(name)}"
        if why is None:
            lines.append(f"{start}/>")
        else:
            lines.append(f"{start}>")
            lines.append(f"      <failure message={_quoted(why)}>{escape(_plain(why))}</failure>")
            lines.append("    </testcase>")
    return "\n".join([*lines, "  </testsuite>", "</testsuites>"])


def _quoted(text: str) -> str:
    return quoteattr(_plain(text))


def _plain(text: str) -> str:
    """Without the characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)
