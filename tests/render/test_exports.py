"""Figures written for other programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest

from groupgt.render.exports import as_written, csv_text, json_text, junit_text, write_rows

ODD = ["a,b", 'say "so"', "line\nfeed", "carriage\rreturn", "both\r\nof them", "\ttab", "=1+1", "naïve\u2028", ""]


def test_csv_comes_back_as_it_was() -> None:
    """A lone carriage return would end a row for who reads it, were it not quoted."""
    rows = list(csv.reader(io.StringIO(csv_text(["id", "value"], [[cell, 0.1] for cell in ODD]), newline="")))
    assert rows[0] == ["id", "value"]
    assert [row[0] for row in rows[1:]] == [f"'{cell}" if cell[:1] in ("\t", "=") else cell for cell in ODD]
    assert {row[1] for row in rows[1:]} == {"0.1"}


@pytest.mark.parametrize("ending", [".csv", ".CSV", ".jsonl", ".JSONL", ".parquet", ".Parquet"])
def test_endings_in_any_case(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows{ending}"
    write_rows(path, ["id", "value"], [["a", 0.1], ["b", float("nan")]], ending)
    read = {".csv": pl.read_csv, ".jsonl": pl.read_ndjson, ".parquet": pl.read_parquet}[ending.lower()]
    assert read(path)["id"].to_list() == ["a", "b"]


def test_json_has_no_nan() -> None:
    assert json.loads(json_text({"a": [float("nan"), float("inf"), -float("inf"), 0.1]})) == {
        "a": [None, None, None, 0.1]
    }


def test_formulas_are_escaped_and_come_back() -> None:
    assert csv_text(["qid", "map"], [["=1+1", 0.25], ["q2", None]]).splitlines() == ["qid,map", "'=1+1,0.25", "q2,"]
    assert [as_written(text) for text in ("'=1+1", "it's", "''-2")] == ["=1+1", "it's", "'-2"]


def test_junit() -> None:
    cases = [("handbook", "recall@5", "failure", "is 0.2"), ("handbook", "mrr", "system-out", "")]
    assert junit_text("gates", cases, ["Old index."]).splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        '  <testsuite name="gates" tests="2" failures="1" errors="0" skipped="0">',
        '    <testcase classname="handbook" name="recall@5">',
        '      <failure message="is 0.2">is 0.2</failure>',
        "    </testcase>",
        '    <testcase classname="handbook" name="mrr"/>',
        "    <system-out>Old index.</system-out>",
        "  </testsuite>",
        "</testsuites>",
    ]
