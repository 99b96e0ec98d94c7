"""Small TREC files: what is told of their lines is what Python tells that reads them all."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import groupgt
from groupgt import native
from groupgt.engines.carriers import carrier_of
from groupgt.engines.order import contradictions
from groupgt.formats import detect, trec
from groupgt.formats.source import Source
from groupgt.model.run import Lines, Run

needs_module = pytest.mark.skipif(native.built is None, reason="groupgt._native is not built, or turned off")
TRUTH = groupgt.GroundTruth.of({f"q{n}": [[f"d{n}"], ["d5", "D6"]] for n in range(4)})

# Scores of one, a few, 17 and 22 digits, with exponents, and equal ones; ranks from zero, equal, with a point.
SCORES = st.sampled_from(
    ["1", "2.5", "0.30000000000000004", "0.3", "1e-5", "9007199254740993", "1.234567890123456789012", "-0", "+.5", "7."]
)
RANKS = st.sampled_from(["0", "1", "2", "3.0", "-1", "+4", "007", "99999999999999999999"])
NAMES = st.sampled_from([f"d{n}" for n in range(8)])
ROW = st.tuples(NAMES, RANKS, SCORES, st.sampled_from(["t", "t more"]), st.sampled_from(["\n", "\n", "\r\n", "\n\n"]))
BLOCKS = st.dictionaries(
    st.sampled_from([f"q{n}" for n in range(6)]), st.lists(ROW, min_size=1, max_size=8), min_size=1
)


def written(blocks: dict[str, list[Any]], *, comment: bool, in_order: bool, scattered: bool) -> str:
    lines = []
    # One query at least has ground truth.
    for qid, rows in {"q0": [("d0", "1", "1", "t", "\n")], **blocks}.items():
        if in_order:
            scores = sorted((row[2] for row in rows), key=float, reverse=True)
            rows = [(row[0], str(rank), score, *row[3:]) for rank, (row, score) in enumerate(zip(rows, scores))]
        lines += [f"{qid} Q0 {name} {rank} {score} {tag}{end}" for name, rank, score, tag, end in rows]
    if scattered:
        lines = lines[::2] + lines[1::2]
    return "# a run\n" * comment + "".join(lines)


def told(run: Run) -> dict[str, Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = groupgt.evaluate(TRUTH, run, ["ndcg", "mrr", "recall@2"])
        counts = found.counts
    return {
        "values": {name: values.tolist() for name, values in found.values.items()},
        "counts": counts,
        "warnings": sorted(str(warning.message) for warning in caught),
        "contradictions": contradictions(run),
        "sample": {qid: list(ids) for qid, ids in carrier_of(run).sample(9).items()},
        "some": {qid: list(ids) for qid, ids in carrier_of(run).sample(9, ["q2", "none"]).items()},
        "repeating": carrier_of(run).repeating(TRUTH),
        "plain": (run.in_memory, run.is_plain),
        "rankings": dict(run.rankings),
        "comments": found.comments,
    }


@needs_module
@given(BLOCKS, st.booleans(), st.booleans(), st.booleans())
def test_lines_as_python_reads_them(
    blocks: dict[str, list[Any]], comment: bool, in_order: bool, scattered: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trec"
        text = written(blocks, comment=comment, in_order=in_order, scattered=scattered)
        path.write_bytes(text.encode())
        run = detect.unread_run(path)
        assert isinstance(run.contents, Lines)
        assert told(run) == told(trec._read_lines(Source(path)))


@needs_module
def test_only_wrong_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    # Ranks from zero, a score of 17 digits, and ranks that contradict scores in q2.
    path.write_text("q1 Q0 d1 0 0.30000000000000004 t\nq1 Q0 x 1 0.3 t\nq2 Q0 d2 1 0.5 t\nq2 Q0 d5 2 0.7 t\n")
    run = detect.unread_run(path)
    found = groupgt.evaluate(TRUTH, run, ["mrr"])
    assert found.counts["contradicted_ranks"] == 1
    # q1: d1 first, no d5: (1 + 0) ÷ 2. q2: d5 (0.7) above d2: (1 + 1/2) ÷ 2. q0 and q3: 0. (0.5 + 0.75) ÷ 4.
    assert found.means == {"mrr": 0.3125}
    assert not {"columns", "checked"} & set(vars(run.contents))


def test_a_run_that_was_read_holds_its_rankings(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q1 Q0 b 1 1 t\nq1 Q0 a 2 2 t\n")
    run = groupgt.read_run(path)
    assert run.rankings == {"q1": ["b", "a"]}
    path.write_text("q1 Q0 b 1 x t\n")
    with pytest.raises(groupgt.DataError, match=r"run\.trec:1: "):
        groupgt.read_run(path)
