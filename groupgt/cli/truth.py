"""Commands that create, check and convert ground truth, such as `groupgt check` and `groupgt convert`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from groupgt.cli import output as out
from groupgt.cli.help import command
from groupgt.cli.inputs import Inputs, input_options
from groupgt.cli.needs import refuse, typed_parameters
from groupgt.cli.options import ANY_RUNS, LABELLER, MAYBE_RUN, OF_TRUTH, PARTS, SCORES, TOOLS, TRUTH
from groupgt.cli.reports import ReportingCommand
from groupgt.curation.agree import agreement_of
from groupgt.curation.check import Check, checked
from groupgt.curation.rechunk import WAYS, notes_of, rechunk
from groupgt.curation.review import HEADERS, accepted, rows_of
from groupgt.engines.calls import rankings_to_write
from groupgt.engines.measure import ordered
from groupgt.errors import ConfigError, DataError, listed
from groupgt.evaluation.evaluate import check_directions
from groupgt.evaluation.joined_ids import fault_of_joined, ids_of, unsplit_in, warn_of_joined
from groupgt.formats.detect import kind_of, require_paths
from groupgt.formats.known import format_named
from groupgt.formats.pairing import matched
from groupgt.formats.source import Source
from groupgt.formats.write import FLAT, RUN_WRITERS, TRUTH_WRITERS, write_ground_truth, write_run
from groupgt.labellers.spans import UNITS
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.run import Run
from groupgt.model.written import SHAPES, Shape
from groupgt.render.exports import check_ending
from groupgt.render.results import Result
from groupgt.render.tables import counted, part_of
from groupgt.store.files import write_atomically, write_folder, write_text

# Formats of ground truth in one file, by file ending.
TRUTH_ENDINGS = ("jsonl", "parquet", "csv", "tsv")
# The parameters of a check that apply to an experiment file.
OF_EXPERIMENT = {"truth_path", "allow_code", "exit_zero", "junit", "style", "wide", "color", "details"}


@click.command("check", cls=ReportingCommand)
@click.option(
    "--near-duplicates", is_flag=True, help="Look in the corpus for unjudged near-duplicates of judged passages."
)
@out.default_option("--threshold", type=float, default=0.9, help="Minimum similarity of a near-duplicate.")
@click.option(
    "--write",
    type=out.WRITTEN,
    help="Write near-duplicates for review, as .csv or .jsonl. `convert --accept` adds each near-duplicate "
    "that you mark yes.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if the check fails.")
@out.written_option("--junit", help="Write JUnit XML with a failure for each problem that makes the check fail.")
@out.format_option
@out.details_option
@input_options(TRUTH, ANY_RUNS, LABELLER)
def check_command(
    inputs: Inputs,
    near_duplicates: bool,
    threshold: float,
    write: Path | None,
    exit_zero: bool,
    junit: Path | None,
    style: str,
) -> None:
    """Check TRUTH and RUNS for errors and suspicious data without scoring.

    With an experiment file (.yaml) alone, check the ground truth, corpus and results of each data set as the experiment
    reads them. Nothing is retrieved.

    The exit status is 1 if the data would make numbers wrong: ids missing from the corpus, passages without text,
    groups that nothing can cover, repeated ids, and undeclared distances.
    """
    if write is not None and write.suffix.lower() not in (".csv", ".jsonl"):
        raise ConfigError(f"--write {write}: expected a file that ends in .csv or .jsonl")
    if write is not None and write.exists():
        raise ConfigError(f"--write {write}: already exists and may contain review marks; choose another file")
    if Path(inputs.truth_path).suffix.lower() in (".yaml", ".yml"):
        others = {parameter.name or "" for parameter in typed_parameters()} - OF_EXPERIMENT
        refuse(others, "does not apply to an experiment file, which names its own data; remove this option")
        from groupgt.experiment.data_checks import check_experiment

        of_datasets = check_experiment(inputs.truth_path, allow_code=inputs.allow_code)
        for text in of_datasets.unchecked:
            out.say(f"not checked: {text}")
        _show_check(of_datasets, of_datasets.checks, of_datasets.name, junit, style)
        if of_datasets.fails and not exit_zero:
            raise SystemExit(1)
        return
    inputs.check()
    if near_duplicates and inputs.value("corpus") is None:
        raise ConfigError("--near-duplicates: needs passage text; add --corpus")
    runs = [(str(run), run) for run in inputs.runs]
    if not runs and inputs.value("corpus") is None:
        refuse(["labeller", "labeller_options"], "applies to runs and corpora; add one, or remove this option")
    minimum = threshold if near_duplicates else None
    path = inputs.truth_path
    truth = inputs.reading.but(policy=inputs.policy.of_checks).truth(path)
    findings = checked(str(path), truth, runs, inputs.request_for(), minimum, file=path)
    if write is not None:
        out.write_table(write, lambda: (HEADERS, rows_of(findings.candidates)))
        out.say_wrote(write, counted(len(findings.candidates), "candidate"))
    _show_check(findings, {"": findings}, Path(path).name, junit, style)
    if findings.fails and not exit_zero and write is None:
        raise SystemExit(1)


def _show_check(result: Result, checks: Mapping[str, Check], name: str, junit: Path | None, style: str) -> None:
    from groupgt.report.curation import check_junit

    out.show_result(result, style)
    out.write_file(junit, lambda path: write_text(path, check_junit(name, checks) + "\n"))


@command("rechunk")
@out.file_option("--from", "old", help="Table or corpus of the chunks that TRUTH refers to.")
@out.file_option("--to", "new", help="New chunks. If omitted, groupgt maps alternatives to spans in documents.")
@out.output_option("Write to this .jsonl, .parquet, .csv or .tsv file. Omit it for a dry run.")
@click.option(
    "--method",
    type=click.Choice(WAYS),
    help="Match by spans or by text (default: spans if both tables have spans, otherwise contained).",
)
@out.default_option(
    "--min-overlap", type=float, default=0.5, help="Minimum fraction of an alternative that a chunk must cover (spans)."
)
@out.default_option(
    "--threshold", type=float, default=0.9, help="Minimum similarity, with partial_ratio and token_recall."
)
@out.default_option("--unit", type=click.Choice(UNITS), default="chars", help="Unit of the start and end positions.")
@click.option("--drop-lost", is_flag=True, help="Drop queries that would lose an entire group.")
@out.table_option("--report", help="Write the outcome for every alternative (.csv, .jsonl or .parquet).")
@out.format_option
@input_options(TRUTH)
def rechunk_command(
    inputs: Inputs,
    old: Path | None,
    new: Path | None,
    output: Path | None,
    drop_lost: bool,
    report: Path | None,
    style: str,
    **how: Any,
) -> None:
    """Map ground truth from one chunking to another and list what could not be mapped.

    Give chunks as tables with chunk_id, doc_id, start and end, or as corpora with passage text. Nothing is written if a
    query would lose an entire group and thus require less than before. Groups whose chunks contain less than 90% of a
    passage are listed next to the written file, in FILE.weak.jsonl, which `groupgt check` reads.
    """
    if output is not None:
        check_ending(output, [f".{name}" for name in TRUTH_ENDINGS], "--output ")
    if output is None and new is None:
        raise ConfigError("expected --to (the new chunks) or --output (a file for the spans)")
    inputs.check(also_read=[old, new])
    # If nothing is written, nothing can be lost: losses are only reported.
    carried = rechunk(inputs.truth, old, new, drop_lost=drop_lost or output is None, policy=inputs.policy, **how)
    by_spans, reason = carried.method == "spans", f"the {carried.method} method does not use this option; remove it"
    if carried.method == "contained" or by_spans:
        refuse(["threshold"], reason)
    if not by_spans:
        refuse(["min_overlap", "unit"], reason)
    out.write_table(report, carried.carried_rows)
    if output is not None:
        _write_truth(output, carried.truth, output.suffix.lower().removeprefix("."))
        notes = notes_of(output)
        notes.unlink(missing_ok=True)
        out.write_table(notes if carried.weak else None, carried.weak_rows)
    if carried.rows or style == "json":
        out.show_result(carried, style)


@command("agree")
@out.file_option("--annotator", help="Compare with this ground truth for the same queries.")
@click.option("--other", metavar="NAME", help="Compare with this labeller on the same results.")
@out.default_option("--worst", type=click.IntRange(min=0), metavar="N", default=20, help="List this many groups.")
@out.table_option("--groups", help="Write the counts for each group (.csv, .jsonl or .parquet).")
@out.format_option
@input_options(TRUTH, MAYBE_RUN, LABELLER)
def agree_command(
    inputs: Inputs, annotator: Path | None, other: str | None, worst: int, groups: Path | None, style: str
) -> None:
    """Measure the agreement between two labellers or annotators: Cohen's kappa, and the groups they differ on.

    With --other, two labellers decide for every result in RUN which groups it hits. With --annotator, two ground truths
    (or journals of groupgt judge) decide which results are relevant. Without RUN, groupgt compares the annotators on
    the documents that either of them has judged.
    """
    inputs.check(also_read=[annotator])
    other_labeller = None if other is None else inputs.labeller_of(other)
    agreement = agreement_of(inputs.request_for(), inputs.truth, inputs.run, annotator, other_labeller)
    if annotator is not None:
        agreement = replace(agreement, first=str(inputs.truth_path), second=str(annotator))
    out.write_table(groups, agreement.group_rows)
    out.show_result(replace(agreement, worst=worst), style)


@command("convert")
@click.argument("source", metavar="IN", type=out.FILE)
@click.argument("target", metavar="OUT", type=out.WRITTEN)
@click.option(
    "--to",
    "to",
    metavar="FORMAT",
    required=True,
    help=f"{', '.join([*TRUTH_WRITERS, FLAT])} (ground truth); {', '.join(RUN_WRITERS)} (results); "
    "experiment (an AutoRAG project).",
)
@click.option("--from", "source_format", help="Format of IN, such as trec-subtopics (default: auto-detect).")
@click.option("--kind", type=click.Choice(["truth", "run"]), help="What IN contains (default: auto-detect).")
@out.file_option("--truth", help="Take query ids from this ground truth, for traces and results that have no qid.")
@out.file_option("--accept", help="Add the near-duplicates marked yes in this file from `check --write`.")
@click.option(
    "--shape", type=click.Choice(SHAPES), help="Shape of the ground truth (default: determined by its format)."
)
@input_options(OF_TRUTH, PARTS, SCORES, TOOLS)
def convert_command(
    inputs: Inputs,
    source: Path,
    target: Path,
    to: str,
    source_format: str | None,
    kind: str | None,
    truth: Path | None,
    accept: Path | None,
    shape: Shape | None,
) -> None:
    """Convert ground truth or runs from one format to another, or an AutoRAG project to an experiment file."""
    if to == "experiment":
        import_autorag(source, target)
        return
    in_parts = inputs.value("parts")
    if in_parts:
        if kind == "truth":
            raise ConfigError("--parts: only runs can be split across several files, not ground truth")
        require_paths(truth or source, [source], in_parts=True)
        kind = "run"
    read = source if in_parts else Source.at(source)
    if kind is None and source_format is not None:
        is_truth, is_run = (format_named(source_format, is_truth=each) is not None for each in (True, False))
        kind = None if is_truth == is_run else "truth" if is_truth else "run"
    truths = [] if truth is None else [truth]
    if (kind or kind_of(read, inputs.columns_of("run", read) | inputs.columns_of("truth", read))) == "truth":
        inputs.require_columns([read], [])
        refuse(["truth", "scores", "tool_spans"], "applies to runs, but IN is ground truth; remove this option")
        converted = inputs.reading.but(
            truth_format=source_format, truth_columns=inputs.columns_of("truth", read)
        ).truth(read)
        warn_of_joined(converted.unsplit, ())
        if accept is not None:
            converted, taken, left = accepted(converted, accept)
            out.say(f"accepted {taken:,}, rejected {left:,}")
        _write_truth(target, converted if shape is None else converted.of_shape(shape), to)
        return
    if to not in RUN_WRITERS:
        raise ConfigError(f"--to: expected {listed(RUN_WRITERS)} for results, found {to!r}")
    refuse(["where", "limit", "accept", "shape"], "applies to ground truth, but IN is a run; remove this option")
    inputs.require_columns(truths, [read])
    of_truth, of_run = inputs.columns_of("truth", *truths), inputs.columns_of("run", read)
    reading = inputs.reading.but(truth_columns=of_truth, run_columns=of_run, run_format=source_format)
    queries = reading.whole_truth(truth) if truth else None
    run = reading.results(read, queries.qids if queries else None)
    check_directions(reading.options["scores"], [run.name])
    unsplit = unsplit_in(run)
    if fault := fault_of_joined(unsplit, ids_of(queries) if queries else ()):
        raise DataError(fault)
    warn_of_joined(unsplit, ())
    ascending = reading.is_ascending(run.name)
    trials = [matched(each, queries) if queries else each for each in run.each]
    run = Run.of_trials([ordered(each, ascending=ascending) for each in trials])
    written, calls, numbers = rankings_to_write(run, inputs.policy)
    rankings, tag = list(written), run.name or "groupgt"
    _write(target, lambda part: write_run(part, rankings, to, tag=tag, calls=calls, trials=numbers), to, len(rankings))


def import_autorag(project: Path, target: Path) -> None:
    """Write an experiment for an AutoRAG project, and report which means it reproduces and which tables it omits."""
    from groupgt.results.autorag import import_project

    if target.exists():
        raise ConfigError(f"{target}: already exists; choose another file")
    imported = import_project(project, target)
    out.say_wrote(target, counted(imported.systems, "system"), f". Run it with: groupgt run {target}")
    reproduced = imported.means - len(imported.different)
    what = f"{part_of(reproduced, imported.means, 'mean', 'stored by AutoRAG is', 'stored by AutoRAG are')} reproduced"
    out.say(what)
    for line in imported.left:
        out.say(f"left out: {line}")
    for line in imported.different:
        out.say(f"warning: {line}")


def _write_truth(path: Path, truth: GroundTruth, format: str) -> None:
    _write(path, lambda part: write_ground_truth(part, truth, format), format, len(truth))


def _write(path: Path, write: Callable[[Path], Sequence[str]], format: str, queries: int) -> None:
    """Write a file atomically. Report the file, and everything that its format cannot store."""
    lost_columns: list[str] = []
    written = write_folder if format == "beir" else write_atomically
    written(path, lambda part: lost_columns.extend(write(part)))
    out.say_wrote(path, counted(queries, "query", "queries"))
    if lost_columns:
        out.say(f"warning: {format} cannot store {listed(lost_columns)}")
