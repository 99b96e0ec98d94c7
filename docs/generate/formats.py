"""Every format: what is read, what is written, and what each can hold."""

from __future__ import annotations

from inspect import getdoc

from docs.generate.markdown import bullets, code, docstring, page, table
from groupgt.formats.known import FORMATS
from groupgt.formats.write import FLAT, RUN_WRITERS, TRUTH_WRITERS

HOLDS = ("groups", "grades", "weights", "importance", "columns", "texts")


def _yes(value: object) -> str:
    return "yes" if value else "–"


def pages() -> dict[str, str]:
    names = dict.fromkeys([*(known.name for known in FORMATS), *TRUTH_WRITERS, *RUN_WRITERS])
    read = {known.name: known for known in FORMATS}
    rows = []
    for name in names:
        known = read.get(name)
        rows.append(
            [
                code(name),
                _yes(known and known.truth),
                _yes(known and known.run),
                _yes(known and known.look),
                _yes(name in TRUTH_WRITERS),
                _yes(name in RUN_WRITERS),
            ]
        )
    headers = ["format", "reads ground truth", "reads results", "recognized", "writes ground truth", "writes results"]
    written = [
        [code(name), *(_yes(getattr(writer, what, False)) for what in HOLDS)] for name, writer in TRUTH_WRITERS.items()
    ]
    readers = []
    for name, known in read.items():
        told = [
            f"{what}: {docstring(text)}"
            for what, reader in (("ground truth", known.truth), ("results", known.run))
            if reader is not None and (text := getdoc(reader) or "")
        ]
        readers += [f"### {name}", bullets(text.partition("\n\n")[0] for text in told)]
    return {
        "reference/formats.md": page(
            "Formats by name",
            "The names that `--truth-format`, `--run-format` and `groupgt convert --to` take, and what each format can "
            "hold. [Formats](../formats.md) shows what the files look like.",
            table(headers, rows),
            "A *recognized* format is detected and need not be named. URLs, frames and folders can be read too.",
            "## What each format keeps when ground truth is written",
            table(["format", *HOLDS], written),
            f"{code(FLAT)} writes qrels without groups, as other tools read them.",
            "## Readers",
            *readers,
        )
    }
