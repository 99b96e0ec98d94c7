"""Results in memory, before they are labelled."""

from __future__ import annotations

import pytest

import groupgt


@pytest.mark.parametrize("qid", ["1", 1])
def test_scores_put_lists_in_order_whatever_the_query_is_called_by(qid: str | int) -> None:
    run = groupgt.Run.of({qid: ["x", "a"]}, scores={qid: [1.0, 2.0]})  # type: ignore[dict-item]
    assert groupgt.evaluate({"1": [["a"]]}, run, ["mrr"]).means == {"mrr": 1.0}
