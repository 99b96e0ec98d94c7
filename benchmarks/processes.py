"""One whole process of a tool, from files to means on stdout: `processes.py read RUN`, `ranx QRELS RUN`, …"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable


def read(run: str) -> None:
    """The floor: polars reads the three columns that matter, and that is all."""
    import polars as pl

    names = ("qid", "q0", "doc", "rank", "score", "tag")
    frame = pl.scan_csv(
        run, has_header=False, schema=dict.fromkeys(names, pl.String), separator=" ", quote_char=None
    ).select("qid", "doc", pl.col("score").cast(pl.Float64))
    print(len(frame.collect(engine="streaming")))


def ranx(qrels: str, run: str) -> None:
    from peers import CUTOFFS, METRICS
    from ranx import Qrels, Run, evaluate

    names = [f"{name}@{k}" for name in METRICS for k in CUTOFFS]
    means = evaluate(Qrels.from_file(qrels, kind="trec"), Run.from_file(run, kind="trec"), names)
    print(json.dumps({name: float(mean) for name, mean in means.items()}))


def ir_measures(qrels: str, run: str) -> None:
    import ir_measures
    from peers import ir_measures_names

    names = ir_measures_names()
    means = ir_measures.calc_aggregate(list(names), ir_measures.read_trec_qrels(qrels), ir_measures.read_trec_run(run))
    print(json.dumps({ours: means[theirs] for theirs, ours in names.items()}))


if __name__ == "__main__":
    tools: dict[str, Callable[..., None]] = {"read": read, "ranx": ranx, "ir_measures": ir_measures}
    tools[sys.argv[1]](*sys.argv[2:])
