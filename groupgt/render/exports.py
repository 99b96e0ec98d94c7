"""Tables as files, by their ending, and JUnit XML for continuous integration."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from groupgt.errors import ConfigError, listed
from groupgt.render.tables import csv_text, nulls
from groupgt.runtime import pl

ENDINGS = (".csv", ".jsonl", ".parquet")


def rows_text(headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> str:
    """Rows as CSV or JSON Lines, with full doubles."""
    if ending == ".csv":
        return csv_text(headers, rows)
    return "".join(json.dumps(nulls(dict(zip(headers, row))), ensure_ascii=False) + "\n" for row in rows)


def check_ending(path: Path) -> None:
    """Raises `ConfigError` for a file whose ending names no format."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{path}: expected a file that ends in {listed(ENDINGS)}, found {path.suffix or 'no ending'}")


def write_rows(path: Path, headers: Sequence[str], rows: Sequence[Sequence[Any]], ending: str) -> None:
    """Writes rows as .csv, .jsonl or .parquet, whose columns are text, whole numbers or doubles by what they hold."""
    if ending != ".parquet":
        path.write_text(rows_text(headers, rows, ending), encoding="utf-8", newline="")
        return
    columns = list(zip(*rows)) or [()] * len(headers)
    series = [pl.Series(name, list(cells), dtype=_kind(cells)) for name, cells in zip(headers, columns)]
    pl.DataFrame(series).write_parquet(path)


def _kind(cells: Sequence[Any]) -> Any:
    """What a column of parquet holds."""
    kinds = {type(cell) for cell in cells if cell is not None}
    return pl.String if str in kinds else pl.Int64 if kinds == {int} else pl.Float64


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
