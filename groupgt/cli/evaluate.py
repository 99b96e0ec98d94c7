"""Commands that evaluate runs, such as `groupgt evaluate`, `explain`, `misses` and `depth`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from groupgt.cli import output as out
from groupgt.cli.help import command
from groupgt.cli.inputs import Inputs, input_options, name_and_path
from groupgt.cli.options import (
    BUDGETS,
    BY,
    EVALUATION,
    LABELLER,
    METRIC,
    METRICS,
    OF_STAGES,
    ONE_RUN,
    RUNS,
    SEVERAL_CONVENTIONS,
    SORT,
    THE_RUN,
    TRUTH,
)
from groupgt.evaluation.evaluate import evaluate_run
from groupgt.evaluation.runs import Evaluations
from groupgt.evaluation.texts import numbers_in
from groupgt.metrics.language import metrics_in, split_names
from groupgt.model.validity import number_of
from groupgt.model.values import SCORE, UNITS


@command("evaluate")
@out.PER_QUERY
@out.written_option("--html", "page", help="Write an HTML report as one self-contained page.")
@SORT
@out.format_option
@out.details_option
@input_options(EVALUATION, SEVERAL_CONVENTIONS)
def evaluate_command(inputs: Inputs, per_query: Path | None, page: Path | None, sort: str | None, style: str) -> None:
    """Compute metrics for RUNS (files, folders or globs; each file is one run) against the ground truth in TRUTH.

    Default metrics: precision, recall, f1, mrr, map and ndcg. Without -k, metrics written without a cutoff use the
    whole ranking.
    """
    inputs.check()
    inputs.check_budgets(inputs.request)
    evaluations = inputs.evaluations(inputs.request)

    def write_page(path: Path) -> None:
        from groupgt.comparison.compare import comparison_of
        from groupgt.comparison.settings import Settings

        by_name = {evaluation.name: evaluation for evaluation in evaluations}
        comparison_of(by_name, next(iter(by_name)), Settings()).to_html(path, corpus=inputs.texts)

    out.write_file(page, write_page)
    out.write_values(per_query, evaluations)
    result = Evaluations.of(evaluations, inputs.conventions)
    out.show_result(result if sort is None else result.sorted_by(sort), style)


@command("explain")
@click.option("--query", "qid", required=True, metavar="ID", help="The query to explain.")
@out.default_option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@input_options(TRUTH, ONE_RUN, METRICS, SEVERAL_CONVENTIONS, LABELLER, BUDGETS)
def explain_command(inputs: Inputs, qid: str, style: str) -> None:
    """Show how each metric is calculated for one query, with its hits and a worked example of each formula."""
    inputs.check()
    # Full names, so that two spellings of a metric are explained once.
    metrics = metrics_in(inputs.metrics, inputs.conventions, inputs.value("k"))
    name = inputs.named_runs[0][0]
    evaluation = evaluate_run(inputs.request_for(metrics, inputs.conventions[0]), inputs.truth, inputs.run, name)
    if style == "json":
        out.show_json(evaluation.explain_dict(qid))
    else:
        from groupgt.report.explain import explanation

        metrics_shown = list(evaluation.metrics.values())
        click.echo(explanation(evaluation, qid, metrics_shown, inputs.lengths.texts or None, out.screen()))


@command("misses")
@out.default_option(
    "--worst",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    help="List this many queries or, with several runs, this many groups.",
)
@out.default_option(
    "-k",
    "k",
    type=click.IntRange(min=1),
    metavar="N",
    default=10,
    help="Count a group as covered if it has a hit in the top k.",
)
@out.format_option
@out.details_option
@input_options(TRUTH, RUNS, LABELLER)
def misses_command(inputs: Inputs, worst: int, k: int, style: str) -> None:
    """List the groups that the worst queries miss, with each group's first hit, and show how well groups are covered.

    With several RUNS, list the groups covered by the fewest runs, with the rank of their first hit in each run.
    """
    from groupgt.evaluation.missed import Misses

    inputs.check()
    evaluations = inputs.evaluations(inputs.request_for([f"recall.coverage@{k}"], "coverage"))
    out.show_result(Misses.of(evaluations, k, worst, inputs.texts, inputs.shown), style)


@command("depth")
@out.repeatable_option("--share", "shares", metavar="S", help="Fractions of queries, such as 0.5,0.9 (default: 0.9).")
@out.default_option(
    "--unit",
    type=click.Choice(["results", *UNITS, SCORE]),
    default="results",
    help="Measure depth in this unit. `score` finds score thresholds at which unanswerable queries return no results.",
)
@out.default_option("--confidence", type=float, default=0.95, help="Confidence level.")
@out.format_option
@out.details_option
@input_options(TRUTH, RUNS, BY, LABELLER, BUDGETS)
def depth_command(inputs: Inputs, shares: tuple[str, ...], unit: str, confidence: float, style: str) -> None:
    """Find how deep you must look, in results or another unit, until a given fraction of queries is complete.

    With --unit score, find the lowest score threshold at which a given fraction of the unanswerable queries (declared
    answerable: false) returns nothing, and the recall of the other queries at that threshold.
    """
    from groupgt.evaluation.depth import METRIC, check_depth, depths_of

    fractions = numbers_in("--share", shares, _fraction, FRACTIONS) or [0.9]
    if unit == SCORE:
        from groupgt.evaluation.thresholds import thresholds_of

        inputs.check()
        out.show_result(thresholds_of(inputs.evaluations(inputs.request_for([METRIC])), fractions), style)
        return
    check_depth(fractions, unit, confidence)
    inputs.check()
    evaluations = inputs.evaluations(inputs.request_for([METRIC]))
    depths = depths_of(evaluations, fractions, unit=unit, confidence=confidence, lengths=inputs.lengths)
    if style == "json":
        out.show_json(depths.to_dict()["depths"])
    else:
        out.show_result(depths, style)


@command("stages")
@out.table_option("--groups", help="Write one row per group, with its stages (.csv, .jsonl or .parquet).")
@out.format_option
@input_options(TRUTH, BY, LABELLER, OF_STAGES)
@click.argument("runs", metavar="STAGES...", nargs=-1, required=True)
def stages_command(inputs: Inputs, runs: tuple[str, ...], groups: Path | None, style: str) -> None:
    """Find the pipeline stage at which each group is lost.

    STAGES are runs in pipeline order, such as retrieved.trec@100 reranked.trec@10 prompt.jsonl. @10 keeps only the
    first 10 results, and NAME=PATH names a stage. A group is lost at the stage after the last one that covers it.
    """
    from groupgt.evaluation.stages import METRIC, stage_of, stages_of

    named = [stage_of(name, str(path)) for name, path in map(name_and_path, runs)]
    paths: list[Any] = [path for _, path, _ in named]
    inputs = replace(inputs, run_paths=tuple(paths))
    inputs.check()
    stages = stages_of(inputs.request_for([METRIC]), inputs.truth, named)
    out.write_table(groups, stages.csv_rows)
    out.show_result(stages, style)


@command("outcomes")
@click.option("--oracle", type=out.FILE, help="Compare with judged answers generated from gold context.")
@out.default_option("-k", "k", type=click.IntRange(min=1), default=10, help="Measure completeness in the top k.")
@out.default_option("--confidence", type=float, default=0.95, help="Confidence level.")
@out.format_option
@out.details_option
@input_options(TRUTH, THE_RUN, LABELLER)
@click.argument("answers", metavar="ANSWERS", type=out.FILE)
def outcomes_command(inputs: Inputs, answers: Path, oracle: Path | None, k: int, confidence: float, style: str) -> None:
    """Show how often answers are correct when retrieval is complete, and when it is not.

    ANSWERS has one row per answer (JSONL, CSV or parquet), with qid and correct (0, 1 or a score in between). groupgt
    leaves out answers to queries without ground truth. The numbers show associations, not causes.
    """
    from groupgt.comparison.outcomes import COMPLETE, outcomes_of
    from groupgt.formats.answers import read_answers

    inputs.check(also_read=[answers, oracle])
    request = inputs.request_for([COMPLETE], k=[k])
    judged = read_answers(answers, inputs.columns_of("answers", answers))
    gold = None if oracle is None else read_answers(oracle, inputs.columns_of("answers", oracle))
    evaluation = evaluate_run(request, inputs.truth, inputs.run, inputs.named_runs[0][0])
    out.show_result(outcomes_of(evaluation, k, judged, gold, confidence), style)


@command("identify")
@out.format_option
@out.details_option
@input_options(TRUTH, THE_RUN, METRIC, LABELLER)
@click.argument("number", metavar="NUMBER")
def identify_command(inputs: Inputs, number: str, style: str) -> None:
    """Find which metric, convention, cutoff and policy give NUMBER (such as 0.6131 or 61.3%) on RUN.

    groupgt first tries the default settings of common tools and their known deviations. -m limits the search to one
    metric, in any convention and at any cutoff. The more digits NUMBER has, the fewer settings match it.
    """
    from groupgt.evaluation.identify import identified

    inputs.check()
    names = [name for text in inputs.metric_texts for name in split_names(text)]
    out.show_result(identified(inputs.truth, inputs.run, number, inputs.request_for(), names), style)


FRACTIONS = "expected numbers above 0, at most 1, such as 0.5,0.9 or 90%"


def _fraction(text: str) -> float | None:
    number = number_of(text.removesuffix("%"))
    if number is not None and text.endswith("%"):
        number /= 100
    return number if number is not None and 0 < number <= 1 else None
