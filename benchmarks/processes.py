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


def pytrec_eval(qrels: str, *runs: str) -> None:
    import pytrec_eval

    with open(qrels, encoding="utf-8") as file:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(file), {"ndcg", "map", "recip_rank", "recall.1000"}
        )
    means = []
    for path in runs:
        with open(path, encoding="utf-8") as file:
            values = list(evaluator.evaluate(pytrec_eval.parse_run(file)).values())
        means.append({name: sum(value[name] for value in values) / len(values) for name in values[0]})
    print(json.dumps(means))


def ir_measures_run(qrels: str, *runs: str) -> None:
    import ir_measures

    names = {ir_measures.nDCG: "ndcg", ir_measures.AP: "map", ir_measures.RR: "recip_rank"}
    names[ir_measures.R @ 1000] = "recall_1000"
    judged = list(ir_measures.read_trec_qrels(qrels))
    means = [ir_measures.calc_aggregate(list(names), judged, ir_measures.read_trec_run(run)) for run in runs]
    print(json.dumps([{names[measure]: mean for measure, mean in each.items()} for each in means]))


if __name__ == "__main__":
    tools: dict[str, Callable[..., None]] = {
        each.__name__: each for each in (read, ranx, ir_measures, pytrec_eval, ir_measures_run)
    }
    tools[sys.argv[1]](*sys.argv[2:])
