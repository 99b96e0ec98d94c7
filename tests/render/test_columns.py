"""Fields of a contrast: declared once, and shown by every output."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

import groupgt
from groupgt.comparison.contrast import Contrast, Row
from groupgt.render.columns import columns_of, csv_headers, jsonable
from groupgt.report.comparison import dataset_of

TRUTH = {"q1": [["a"]], "q2": [["b"]], "q3": [["c"]]}
RUNS = {"base": {"q1": ["a"], "q2": ["b"], "q3": ["z"]}, "other": {"q1": ["z", "a"], "q2": ["z"], "q3": ["c"]}}


@pytest.fixture(scope="module")
def table() -> groupgt.Comparison:
    return groupgt.compare(TRUTH, RUNS, ["recall@1"], convention="coverage")


def test_every_output_has_every_field(table: groupgt.Comparison) -> None:
    names = list(columns_of(Contrast))
    assert list(table.to_dict()["rows"][1]["against_baseline"]) == names
    page = dataset_of(table.by(), "own")["contrasts"]
    assert (page["names"], page["heads"]) == (names, [column.heading for column in columns_of(Contrast).values()])
    assert all(len(row[7]) == len(names) for row in page["rows"])
    in_csv = {name for name, column in columns_of(Contrast).items() if column.in_csv}
    headers = table.csv_rows()[0]
    assert headers == table.to_polars().columns
    assert in_csv - set(headers) == {"delta_interval"}
    assert {"delta_low", "delta_high"} <= set(headers)
    assert csv_headers(Contrast)[:4] == ["delta", "delta_low", "delta_high", "pairs"]
    assert jsonable(Row("bm25", "recall@5", 0.5, (math.nan, math.nan), 1, None))["interval"] is None


def test_a_row_has_the_fields_of_its_contrast(table: groupgt.Comparison) -> None:
    base, other = table.rows
    assert other.against is not None
    for each in fields(Contrast):
        assert getattr(other, each.name) == getattr(other.against, each.name)
        assert getattr(base, each.name) in (None, False)
        assert each.name in dir(base)
    with pytest.raises(AttributeError, match="'Row' object has no attribute 'detla'"):
        other.detla  # noqa: B018


def test_a_contrast_can_be_turned(table: groupgt.Comparison) -> None:
    contrast = table.rows[1].against
    assert contrast is not None
    assert (contrast.delta, contrast.wins, contrast.losses) == (pytest.approx(-1 / 3), 1, 2)
    turned = contrast.turned
    assert (turned.delta, turned.wins, turned.losses) == (-contrast.delta, 2, 1)
    assert turned.delta_interval == (-contrast.delta_interval[1], -contrast.delta_interval[0])
    assert turned.turned == contrast
