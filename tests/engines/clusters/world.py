"""The same results here and on a cluster, and a worker that dies in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupgt

METRICS = ["recall@5", "ndcg.coverage@10", "mrr", "precision@200tokens"]
QUERIES = 60
ROOT = Path(__file__).parents[3]


def truth() -> groupgt.GroundTruth:
    """Queries with one to three groups and excluded ids; the first have no results."""
    groups = {
        f"q{query}": [
            [f"d{(query * 7 + 5 * group + other) % 41}" for other in range(2)] for group in range(1 + query % 3)
        ]
        for query in range(QUERIES)
    }
    return groupgt.GroundTruth.of(
        groups, excluded_ids={f"q{query}": [f"d{query * 7 % 41 - 1}"] for query in range(9, 30)}
    )


def rows() -> pl.DataFrame:
    """Shuffled rows, with repeats and equal scores; the last queries have no ground truth."""
    made = [
        (f"q{query}", f"d{(query * 7 + place * place) % 41}", float(place * 13 % 8), (query + 3 * place) % 40)
        for query in range(4, QUERIES + 3)
        for place in range(25)
    ]
    frame = pl.DataFrame(made, ["qid", "doc_id", "score", "tokens"], orient="row")
    # Rows that are equal in score and id are equal in all.
    return frame.unique(["qid", "doc_id", "score"], maintain_order=True).sample(fraction=1, shuffle=True, seed=1)


def nested() -> pl.DataFrame:
    """The same as one row per query, in the order of ids."""
    return (
        rows().sort("qid", "doc_id").group_by("qid", maintain_order=True).agg(pl.col("doc_id").alias("retrieved_ids"))
    )


def same(frame: Any, of_lists: Any, truth_frame: Any) -> None:
    """Values and counts are those of a frame of polars, in rows and in lists, with ground truth here and there."""
    engine = {"use": "auto", "with": {"bucket": 7}}
    expected, found = (groupgt.evaluate(truth(), run, METRICS, engine=engine) for run in (rows(), frame))
    assert digest(found) == digest(expected)
    assert found.counts == expected.counts
    assert found.counts["duplicates"] > 0
    assert found.counts["excluded"] > 0
    assert found.explain("q20") == expected.explain("q20")
    expected = groupgt.evaluate(dict(truth_rows().iter_rows()), nested(), METRICS[:3])
    found = groupgt.evaluate(truth_frame, of_lists, METRICS[:3], engine=engine)
    # Queries of ground truth on a cluster stand in any order.
    order = [found.truth.index[qid] for qid in expected.truth.qids]
    for text, column in found.values.items():
        assert column[order].tobytes() == expected.values[text].tobytes()


def truth_rows() -> pl.DataFrame:
    """The ground truth as a frame, without excluded ids."""
    return pl.DataFrame({"qid": truth().qids, "retrieval_gt": [truth()[qid] for qid in truth().qids]})


def digest(evaluation: groupgt.Evaluation) -> dict[str, str]:
    return {text: np.asarray(column, dtype="<f8").tobytes().hex() for text, column in evaluation.values.items()}


class Killer:
    """A labeller's function that compares ids, and of all workers kills one, once: the process that `victim` finds."""

    def __init__(self, marker: Path, victim: Callable[[], int]) -> None:
        self.marker, self.victim = str(marker), victim

    def __call__(self, pairs: Sequence[Any]) -> list[bool]:
        try:
            with open(self.marker, "x", encoding="ascii") as file:
                file.write(str(self.victim()))
        except FileExistsError:
            return [pair.result == pair.alternative for pair in pairs]
        os.kill(self.victim(), signal.SIGKILL)
        return [False for _ in pairs]


def executor() -> int:
    """The process of Java that started this one."""
    pid, name = os.getpid(), ""
    while "java" not in name:
        listed = subprocess.run(["ps", "-o", "ppid=,comm=", "-p", str(pid)], capture_output=True, text=True, check=True)
        parent, name = listed.stdout.split(maxsplit=1)
        pid = pid if "java" in name else int(parent)
    return pid


def with_a_loss(evaluate: Callable[[Any], groupgt.Evaluation], marker: Path, victim: Callable[[], int]) -> None:
    """Evaluate while a worker is killed, and expect what is found here."""
    found = evaluate({"use": "code", "with": {"target": Killer(marker, victim)}})
    pid = int(marker.read_text())
    assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    expected = groupgt.evaluate(truth(), rows(), METRICS[:3])
    assert digest(found) == digest(expected)
    assert found.counts == expected.counts


def in_a_process(module: str, folder: Path, **others: str) -> dict[str, Any]:
    """Run a module of tests as a program, and return what it printed last."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Ray keeps a token in the home folder, and would join a cluster that is named.
    given = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    home = {"HOME": str(folder), "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", module, str(folder)],
        env={**given, **home, **others},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def require_java() -> None:
    """Skip where Spark cannot run."""
    pytest.importorskip("pyspark", reason="the extra groupgt[spark] is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, and there is neither java on the path nor JAVA_HOME")
