"""Questions in a file of their own."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

import groupgt
from groupgt.formats.corpus import read_queries

TEXTS = {"301": "International organized crime", "302": "R&D of polio"}
CLASSIC = """
<top>
<num> Number: 301
<title> Topic: International
organized crime

<desc> Description:
Identify organizations that participate.

<narr> Narrative:
</top>
<top>
<num> Number: 302
<title> R&amp;D of polio
</top>
"""
WEB = """<?xml version="1.0"?>
<topics>
 <topic number="301" type="faceted"> <query>International organized crime</query>
  <description>Find it.</description> <subtopic number="1" type="inf">What is it?</subtopic> </topic>
 <topic number="302"><query>R&amp;D of polio</query><question>Who has it?</question></topic>
</topics>
"""
CLOSED = "<TOPICS><TOP><NUM>301</NUM><TITLE>International organized crime</TITLE></TOP>\n" + (
    "<TOP><NUM>302</NUM><TITLE>R&D of polio</TITLE></TOP></TOPICS>"
)
FILES = {
    "classic": CLASSIC,
    "web": WEB,
    "closed": CLOSED,
    "tsv": "301\tInternational organized crime\n\n302\tR&D of polio\n",
    "tsv with a header": "qid\tquery\n301\tInternational organized crime\n302\tR&D of polio\n",
    "csv": "query_id,text\n301,International organized crime\n302,R&D of polio\n",
    "jsonl": '{"_id": "301", "text": "International organized crime", "metadata": {}}\n'
    '{"_id": 302, "text": "R&D of polio"}\n',
    "ground truth": '[{"qid": "301", "query": "International organized crime", "retrieval_gt": []},'
    ' {"qid": "302", "query": "R&D of polio"}]',
}


@pytest.mark.parametrize("name", FILES)
def test_each_format(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(FILES[name])
    assert read_queries(tmp_path / "file") == TEXTS
    (tmp_path / "file").write_bytes(gzip.compress(FILES[name].replace("\n", "\r\n").encode()))
    assert read_queries(tmp_path / "file") == TEXTS


def test_parquet_and_folders(tmp_path: Path) -> None:
    pl.DataFrame({"qid": ["301", "302"], "query": list(TEXTS.values())}).write_parquet(tmp_path / "q.parquet")
    assert read_queries(tmp_path / "q.parquet") == TEXTS
    (tmp_path / "beir").mkdir()
    (tmp_path / "beir" / "queries.jsonl").write_text(FILES["jsonl"])
    assert read_queries(tmp_path / "beir") == TEXTS


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("301\tone\n301\ttwo\n", r"file:2: duplicate query '301' \(first at .*file:1\); remove one"),
        ("301\n302\tx\n", "file:1: expected a query id, a tab and text, found '301'"),
        ("301\t\n", r"file:1: query '301': expected text \(query, text, question, .*title\), found ''"),
        (" \tx\n", "file:1: the query id is blank"),
        ('{"qid": "1"}\n', "file:1: query '1': expected text"),
        ('{"query": "x"}\n', "file:1: expected a query id"),
        ('{"qid": 1.5, "query": "x"}\n', r"file:1: expected a query id \(a string or integer\), found 1\.5"),
        ("<top>\n<title> x\n</top>\n", "file:1: the query id is blank"),
        ("<top>\n<num> 1\n<desc> x\n</top>\n", "file:1: query '1': expected text"),
        ("<html></html>", r"file: expected queries \(TREC topics, TSV, JSONL or BEIR\), found none"),
        ("\n", "found none"),
    ],
)
@pytest.mark.filterwarnings("ignore::groupgt.GroupgtWarning")
def test_what_is_no_question(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(content)
    with pytest.raises(groupgt.DataError, match=words):
        read_queries(tmp_path / "file")
