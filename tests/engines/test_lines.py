"""Lines of TREC runs compared in C: the same as the same results in lists and columns, cut into parts anywhere."""

from __future__ import annotations

import gzip
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt import native
from groupgt.engines.base import Labelled
from groupgt.engines.carriers import carrier_of
from groupgt.engines.choice import Engine
from groupgt.engines.columns import lines
from groupgt.formats import source, trec
from groupgt.formats.source import Source
from groupgt.labellers.ids import Ids
from groupgt.model.policy import Policy
from groupgt.model.run import Columns, Lines, Run

pytestmark = pytest.mark.skipif(native.built is None, reason="groupgt._native is not built, or turned off")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SMALL", 0)
    monkeypatch.setattr(lines, "PART", 500)
    monkeypatch.setattr(lines, "SCATTERED_PART", 700)
    monkeypatch.setattr(lines, "WINDOW", 60)
    monkeypatch.setattr(lines, "WIDEST_WINDOW", 1 << 12)


def read(path: Path) -> Run:
    run = groupgt.read_run(path, "trec")
    assert isinstance(run.contents, Lines)
    return run


def labelled(run: Run, truth: groupgt.GroundTruth, policy: Policy | None = None) -> Labelled:
    return carrier_of(run).label(truth, Ids(), policy or Policy(), Engine())


def described(given: Labelled) -> dict[str, object]:
    """What engines must agree about; ties as the set of ranks that they span."""
    hits = given.hits
    columns = (hits.query, hits.rank, hits.alternative, hits.repeat, hits.length, given.present)
    ties = {*zip(given.tie_query.tolist(), given.tie_first.tolist(), given.tie_last.tolist(), strict=True)}
    told = given.extra, given.duplicated, given.no_match, given.extra_names, ties
    return {"columns": [(column.dtype, column.tolist()) for column in columns], "told": told}


def rows(rng: random.Random, shape: str) -> list[str]:
    written = []
    for number in range(rng.choice((1, 3, 12))):
        count = rng.choice((1, 5, 40))
        scores = [rng.choice((rng.random(), float(rng.randrange(4)), rng.randrange(3))) for _ in range(count)]
        if shape != "unsorted":
            scores.sort(reverse=True)
        for rank, score in enumerate(scores, 1):
            gap = rng.choice((" ", " ", "\t", "  "))
            name = rng.choice((f"d{rng.randrange(30)}", f"문서{rng.randrange(30)}"))
            cells = [f"q{number}", "Q0", name, str(rank), repr(score), "tag", *rng.choice(([], [], ["more"]))]
            written.append(gap.join(cells) + rng.choice(("\n", "\n", "\r\n", "\n\n")))
    if shape == "scattered":
        rng.shuffle(written)
    return written


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("shape", ["in order", "unsorted", "scattered"])
def test_lines_as_lists(tmp_path: Path, seed: int, shape: str) -> None:
    rng = random.Random(f"{shape} {seed}")
    text = "".join(rows(rng, shape))
    path = tmp_path / "run.trec"
    content = rng.choice((b"", b"\xef\xbb\xbf")) + (text.rstrip() if seed % 3 == 0 else text).encode()
    path.write_bytes(gzip.compress(content) if seed % 5 == 4 else content)
    names = [*(f"d{number}" for number in range(30)), *(f"문서{number}" for number in range(30))]
    groups = {f"q{n}": [rng.sample(names, rng.randint(1, 9)) for _ in range(rng.randint(0, 3))] for n in range(2, 14)}
    truth = groupgt.GroundTruth.of(groups)
    policy = Policy(ties=rng.choice(("id", "input")))
    run = read(path)
    told = described(labelled(run, truth, policy))
    assert "columns" not in vars(run.contents)
    assert told == described(labelled(trec._read_lines(Source(path)), truth, policy))


def test_one_query_of_more_bytes_than_a_part(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("".join(f"q Q0 d{n} {n} {-n} t\n" for n in range(90)) + "r Q0 d1 1 1 t\n")
    hits = labelled(read(path), groupgt.GroundTruth.of({"q": [["d7"], ["d89"]], "r": [["d1"]]})).hits
    assert hits.rank.tolist() == [8, 90, 1]
    assert hits.length.tolist() == [90, 1]


GOOD = "q Q0 d1 1 2 t\n" * 60
BAD = [
    "q Q0 d2 2 x t\n",
    "q Q0 d2 2 1e999 t\n",
    "q Q0 d2 2 nan t\n",
    "q Q0 d2 2.5 1 t\n",
    "q Q0 d2 2 1\n",
    "q Q0 d2 2 1 7 t\n",
    "q Q0 d2 2 1 t" + " t" * 9 + "\n",
    "q Q0 d2\r 2 1 t\n",
    "q Q0 d\x002 2 1 t\n",
    "q Q0 d\x7f2 2 1 t\n",
    "q Q0 \u3000 2 1 t\n",
    "\u00a0 Q0 d2 2 1 t\n",
    "q Q0 d\u2028 2 1 t\n",
    "q Q0 " + "x" * 70_000 + " 2 1 t\n",
    "q\x85 Q0 d2 2 1 t\n",
]


@pytest.mark.parametrize("line", BAD)
def test_the_same_messages_as_without_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes((GOOD + line + GOOD + line).encode())

    def told() -> tuple[str, list[str]]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(groupgt.DataError) as raised:
                groupgt.evaluate({"q": [["d1"]]}, path, ["mrr"], run_format="trec")
        return str(raised.value), [str(each.message) for each in warned]

    first = told()
    assert "run.trec:61: " in first[0]
    monkeypatch.setattr(native, "built", None)
    assert told() == first


@pytest.mark.parametrize("odd", ["q Q0 " + "x" * 9000 + " 2 1 t\n", "q Q0 d2 2 1 \u3000\n", "q\x0bQ0 d2 3. 1 t\n"])
def test_lines_that_only_python_takes(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes((GOOD + odd).encode())
    truth = groupgt.GroundTruth.of({"q": [["x" * 9000, "d2"]]})
    assert labelled(read(path), truth).hits.rank.tolist() == [61]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_bytes(GOOD.encode() + b"q Q0 d\xff 2 1 t\n")
    with pytest.raises(groupgt.DataError, match=r"run\.trec:61: .*UTF-8"):
        labelled(read(path), groupgt.GroundTruth.of({"q": [["d1"]]}))


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text(GOOD * 4)
    run = read(path)
    path.write_text(GOOD)
    with pytest.raises(groupgt.DataError, match=r"run\.trec: the file was truncated while being read"):
        labelled(run, groupgt.GroundTruth.of({"q": [["d1"]]}))


def test_policies_that_look_at_all_repeats_read_columns(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 x 1 3 t\nq Q0 x 2 2 t\nq Q0 d1 3 1 t\n")
    truth = groupgt.GroundTruth.of({"q": [["d1"]]})
    assert labelled(read(path), truth, Policy(duplicates="drop")).hits.rank.tolist() == [2]
    assert labelled(read(path), truth).hits.rank.tolist() == [3]


def test_a_file_of_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("\n\n")
    with pytest.warns(groupgt.GroupgtWarning, match=r"the file is empty \(0 results\)"):
        assert np.array_equal(labelled(read(path), groupgt.GroundTruth.of({"q": [["d1"]]})).hits.length, [0])


def test_everything_else_is_asked_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "run.trec"
    path.write_text("q Q0 b 1 1 t\nq Q0 a 2 2 t\n")
    run = read(path)
    assert str(run) == "Run(run: lines, not read yet)"
    carrier: Any = carrier_of(run)
    assert carrier.ranking("q", Policy())[0] == ["a", "b"]
    assert carrier.qids() == ["q"]
    assert [(qid, ids) for qid, (ids, _) in carrier.rankings(Policy())] == [("q", ["a", "b"])]
    assert carrier.sample(9) == {"q": ["b", "a"]}
    assert not carrier.carries("tokens")
    assert run.as_columns.frame.collect().height == 2


def test_parts_of_one_run_are_columns(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.trec").write_text(f"q{name} Q0 d 1 1 t\n")
    run = groupgt.read_run([tmp_path / "a.trec", tmp_path / "b.trec"], parts=True)
    assert isinstance(run.contents, Columns)
    assert groupgt.evaluate({"qa": [["d"]], "qb": [["d"]]}, run, ["mrr"])["mrr"] == 1.0
