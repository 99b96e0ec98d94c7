"""Every format: what groupgt reads and writes, and what each format can store."""

from __future__ import annotations

import re
from functools import partial
from inspect import getdoc

from docs.generate.markdown import bullets, code, docstring, page, table
from groupgt.formats.known import FORMATS
from groupgt.formats.write import EVERYTHING, FLAT, RUN_WRITERS, TRUTH_WRITERS

# What the page calls the parts of ground truth whose names are short.
CALLED = {"named": "excluded and harmful ids", "forms": "spans, passages and sets", "texts": "query text"}


def _yes(value: object) -> str:
    return "yes" if value else "–"


def _says(reader: object) -> str:
    """Return the first paragraph of the docstring of a reader (or of the function it wraps), without errors."""
    text = getdoc(reader.func if isinstance(reader, partial) else reader) or ""
    return re.sub(r"; raises .*", ".", text.partition("\n\n")[0], flags=re.DOTALL)


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
        [code(name), *(_yes(part in writer.keeps) for part in EVERYTHING)] for name, writer in TRUTH_WRITERS.items()
    ]
    readers = []
    for name, known in read.items():
        told = [
            f"{what}: {docstring(_says(reader))}"
            for what, reader in (("ground truth", known.truth), ("results", known.run))
            if reader is not None
        ]
        readers += [f"### {name}", bullets(told)]
    return {
        "reference/formats.md": page(
            "Formats by name",
            "This page lists the format names for `--truth-format`, `--run-format` and `groupgt convert --to`, and the "
            "data that each format can store. [Formats](../formats.md) shows what the files look like.",
            table(headers, rows),
            "groupgt detects *recognized* formats, so you don't need to name them. groupgt also reads URLs, frames "
            "and folders.",
            "## Ground truth that each format can store",
            table(["format", *(CALLED.get(part, part) for part in EVERYTHING)], written),
            f"{code(FLAT)} writes qrels without groups, for other tools.",
            "## Readers",
            *readers,
        )
    }
