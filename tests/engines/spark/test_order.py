"""On Spark results stand in the order of lists and columns: random queries full of ties, repeats and other names."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import polars as pl
import pytest

import groupgt
from groupgt.engines.carriers import carrier_of
from groupgt.model.policy import Policy
from groupgt.model.run import Remote
from tests.engines.test_order import DOCS, Rows, as_columns, as_lists, labelled, seen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def made(seed: int) -> tuple[groupgt.GroundTruth, Rows]:
    """Ground truth and rows of many small queries; some have no results, some no ground truth."""
    rng = random.Random(seed)
    qids = [f"q{number}" for number in range(120)]
    truth = {qid: [rng.sample(DOCS, rng.randint(1, 3)) for _ in range(rng.randint(1, 3))] for qid in qids[:100]}
    scores = (-1.5, -0.0, 0.0, 2.0)
    rows = [(qid, rng.choice(DOCS), rng.choice(scores)) for qid in qids[5:] for _ in range(rng.randint(1, 9))]
    rng.shuffle(rows)
    return groupgt.GroundTruth.of(truth), rows


@pytest.mark.parametrize("name", ["id", "parents"])
@pytest.mark.parametrize("duplicates", ["penalize", "drop", "keep"])
def test_the_order_is_that_of_lists_and_columns(spark: SparkSession, name: str, duplicates: str) -> None:
    truth, rows = made(7)
    policy = Policy(duplicates=duplicates)
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    run = groupgt.Run(Remote(spark.createDataFrame(frame.to_arrow()).repartition(3)))
    renamed, found = labelled(truth, run, name, policy)
    for other in (as_lists(rows), as_columns(rows)):
        renamed_other, expected = labelled(truth, other, name, policy)
        assert seen(found) == seen(expected)
        for qid in ("q0", "q9", "q110"):
            assert carrier_of(renamed).ranking(qid, policy)[0] == carrier_of(renamed_other).ranking(qid, policy)[0]
