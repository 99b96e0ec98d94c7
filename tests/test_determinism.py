"""The same file, data and seed give the same bytes, whatever the process is like that runs them."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.determinism import HANDBOOK, digests

BEFORE = {
    "nothing": "",
    "polars": "import polars;",
    "everything": "import polars, yaml, csv, json, decimal; decimal.getcontext().prec = 5;",
    "a locale": "import locale; locale.setlocale(locale.LC_ALL, '');",
    "random numbers drawn": "import random, numpy; random.seed(3); numpy.random.seed(4); numpy.random.rand(9);",
}
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "hash seed 0": {"PYTHONHASHSEED": "0"},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "no locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "another time zone": {"TZ": "Pacific/Kiritimati"},
    "one thread": {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "many threads": {"POLARS_MAX_THREADS": "7", "OMP_NUM_THREADS": "5"},
    "no bytecode": {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONOPTIMIZE": "1"},
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return digests(tmp_path_factory.mktemp("expected") / "run")


@pytest.mark.faults
@pytest.mark.parametrize("before", BEFORE)
def test_what_was_done_before(before: str, tmp_path: Path, expected: dict[str, str]) -> None:
    assert digests(tmp_path / "run", before=BEFORE[before]) == expected


@pytest.mark.faults
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_environments(environment: str, tmp_path: Path, expected: dict[str, str]) -> None:
    assert digests(tmp_path / "run", environment=ENVIRONMENTS[environment]) == expected


@pytest.mark.property
def test_the_run_can_tell_a_difference(tmp_path: Path, expected: dict[str, str]) -> None:
    """A corpus of one passage less gives other bytes, so that the tests above could fail."""
    lines = (HANDBOOK / "corpus.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "corpus.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    assert "results.json" in expected
    other = digests(tmp_path / "run", corpus=tmp_path / "corpus.jsonl")
    assert other["results.json"] != expected["results.json"]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_has_no_meaning(seed: int, tmp_path: Path) -> None:
    """Lines of ground truth, of results with scores, and of qrels may come in any order."""
    import groupgt

    rng = random.Random(seed)
    qrels = [f"q{q} 0 d{d} {rng.choice((0, 1, 2))}\n" for q in range(20) for d in range(12)]
    run = [f"q{q} Q0 d{d} 1 {rng.random()} t\n" for q in range(20) for d in rng.sample(range(30), 15)]
    metrics = ["recall@5", "ndcg.trec@10", "map.trec", "mrr.trec", "alpha_ndcg@10"]
    found = []
    for _ in range(3):
        (tmp_path / "qrels").write_text("".join(qrels))
        (tmp_path / "run").write_text("".join(run))
        result = groupgt.evaluate(tmp_path / "qrels", tmp_path / "run", metrics)
        values = {qid: row for qid, *row in zip(result.truth.qids, *result.values.values())}
        found.append((dict(sorted(values.items())), result.means))
        rng.shuffle(qrels)
        rng.shuffle(run)
    for one, other in itertools.pairwise(found):
        for qid, row in one[0].items():
            assert row == pytest.approx(other[0][qid], abs=1e-12, nan_ok=True)
        assert one[1] == pytest.approx(other[1], abs=1e-12)
