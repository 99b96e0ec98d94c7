"""Reads query texts from a separate file: TREC topics, TSV, JSON Lines, parquet, or a BEIR folder."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groupgt.errors import DataError, Faults, display
from groupgt.formats.beir import table_in
from groupgt.formats.checks import Firsts
from groupgt.formats.corpus import table_rows
from groupgt.formats.csv import header_of
from groupgt.formats.jsonl import is_array
from groupgt.formats.rows import OTHER_NAMES
from groupgt.formats.source import Source
from groupgt.model.validity import id_fault, id_text

IDS = ("qid", *OTHER_NAMES["qid"][:-1], "_id", "id")
TEXTS = ("query", "text", "question", "title")
# TREC topics: <top> with <num> and <title>, which need not be closed, or <topic number="1"> with <query>.
_TOPIC = re.compile(r"<(top|topic)(\s[^>]*)?>(.*?)(?=</\1\s*>|<\1[\s>]|\Z)", re.IGNORECASE | re.DOTALL)
_NUMBER = re.compile(r"""\b(?:number|id|num)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
_LABEL = re.compile(r"\A(?:number|topic|query|question)\s*:", re.IGNORECASE)


def queries_file(path: Path) -> Path:
    """Return the path of a file with query texts; for a BEIR or MTEB folder, its query file."""
    return (table_in(path, "queries") or path / "queries.jsonl") if path.is_dir() else path


def read_queries(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read `{qid: text}`; raises `DataError` with every error.

    For TREC topics, the text is the title (`<title>` or `<query>`). A table needs an id (`qid`, `query_id`, `_id`,
    `id`) and a text (`query`, `text`, `question`, `title`). TSV without a header line has an id and a text in each
    line.
    """
    source = Source.at(queries_file(Path(path)))
    faults = Faults()
    texts: dict[str, str] = {}
    firsts = Firsts()
    for where, qid, text in _rows(source, faults):
        name = id_text(qid)
        if name is None:
            faults.add(where, f"expected a query id (a string or integer), found {display(qid)}")
        elif fault := id_fault(name):
            faults.add(where, f"the query id {fault}")
        elif not isinstance(text, str) or not text.strip():
            faults.add(where, f"query {display(name)}: expected a text ({', '.join(TEXTS)}), found {display(text)}")
        elif again := firsts.again(name, where):
            faults.add(where, f"duplicate query {display(name)} {again}")
        else:
            texts[name] = text
    faults.stop()
    if not texts:
        raise DataError(f"{source.path}: expected queries (TREC topics, TSV, JSONL or BEIR), found none")
    return texts


def _rows(source: Source, faults: Faults) -> Iterator[tuple[str, Any, Any]]:
    """Yield the location, id and text of each query."""
    begin = b"" if source.is_parquet else source.head().lstrip()[:1]
    if begin == b"<":
        yield from _topics(source)
    elif source.is_parquet or begin == b"{" or is_array(source) or _has_header(source):
        for where, row in table_rows(source, faults):
            key = next((name for name in IDS if row.get(name) is not None), None)
            column = next((name for name in TEXTS if row.get(name) is not None), None)
            if key is None:
                faults.add(where, f"expected a query id ({', '.join(IDS[:2])}, _id or id), found {', '.join(row)}")
            else:
                yield where, row[key], row[column] if column else None
    else:
        for where, line in source.located_lines():
            qid, tab, text = line.partition("\t")
            if tab:
                yield where, qid.strip(), text.strip()
            else:
                faults.add(where, f"expected a query id, a tab and a text, found {display(line)}")


def _has_header(source: Source) -> bool:
    """Return whether the first line of a table contains column names."""
    names = set(header_of(source))
    return bool(names & set(IDS)) and bool(names & set(TEXTS))


def _topics(source: Source) -> Iterator[tuple[str, str, str]]:
    source.check_text()
    content = source.data.decode()
    for topic in _TOPIC.finditer(content):
        attribute = _NUMBER.search(topic[2] or "")
        number = attribute[1] if attribute else _field(topic[3], "num")
        where = f"{source.path}:{content.count(chr(10), 0, topic.start()) + 1}"
        yield where, number, _field(topic[3], "title") or _field(topic[3], "query")


def _field(topic: str, name: str) -> str:
    """Return the content of a topic field on one line, without its label (`Number:`)."""
    match = re.search(rf"<{name}(?:\s[^>]*)?>(.*?)(?=<|\Z)", topic, re.IGNORECASE | re.DOTALL)
    text = html.unescape(match[1]).strip() if match else ""
    return " ".join(_LABEL.sub("", text).split())
