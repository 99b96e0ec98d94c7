"""Commands for experiments and their results: `groupgt run`, `report`, `init`, `cache` and `schema`."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from groupgt.cli import output as out
from groupgt.cli.compare import setting_options
from groupgt.cli.help import command
from groupgt.cli.inputs import CACHE
from groupgt.cli.options import SORT
from groupgt.cli.reports import REPORTS, ReportingCommand
from groupgt.errors import ConfigError, near_names
from groupgt.private import Hide, private_messages
from groupgt.render.document import Detail, Item
from groupgt.render.tables import Grid, counted, signed, small, stacked
from groupgt.runtime import TRACEBACK


@click.command("run", cls=ReportingCommand)
@click.argument("config", type=out.FILE)
@click.option("--dry-run", is_flag=True, help="Check the file and print the plan without retrieving anything.")
@out.repeatable_option(
    "--set", "changes", metavar="KEY=VALUE", help="Override one value, such as evaluate.k=[5]; repeatable."
)
@out.repeatable_option("--only", metavar="SYSTEM", help="Report only these systems (name or pattern); repeatable.")
@click.option(
    "--jobs", type=click.IntRange(1, 1024), default=1, metavar="N", help="Run N retrieval processes in parallel."
)
@click.option("--refresh", is_flag=True, help="Ignore the cache: retrieve, label and build everything again.")
@click.option(
    "--reuse",
    is_flag=True,
    help="Reuse earlier answers from your code and services, and request only the missing ones.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue the newest run that was killed or failed, if it had the same options, queries and corpora. "
    "groupgt does not detect changes to code or services.",
)
@click.option(
    "--allow-code",
    is_flag=True,
    help="Allow the file to run code: `use: python`, plug-ins, programs and scripts that build data.",
)
@out.file_option(
    "--against",
    metavar="FOLDER",
    help="Compare every system with its results in this result folder, or in the newest passing run inside it.",
)
@click.option(
    "--allow-no-previous",
    is_flag=True,
    help="Allow --against when there is no earlier run yet. groupgt skips the gates that compare with an earlier run.",
)
@click.option("--traceback", is_flag=True, help="Show full tracebacks of errors in your code.")
@out.output_option("Write results to this folder (default: the one named in CONFIG).", type=out.FILE)
@out.file_option("--junit", help="Write the gate results as JUnit XML.")
@out.file_option(
    "--summary",
    "summary_path",
    help="Write a short Markdown summary with the verdict, gates and changes, for a CI job or a pull request.",
)
@out.file_option("--metrics-json", help="Write the means as one flat JSON object, for MLflow, Weights & Biases or DVC.")
@out.format_option
@out.details_option
def run_command(
    config: Path,
    dry_run: bool,
    jobs: int,
    against: Path | None,
    allow_no_previous: bool,
    traceback: bool,
    output: Path | None,
    junit: Path | None,
    summary_path: Path | None,
    metrics_json: Path | None,
    style: str,
    **choices: Any,
) -> None:
    """Run the experiment in CONFIG: retrieve, evaluate, print the tables and write the results."""
    bar = out.Bar()
    bar.doing(f"reading {config}")
    from groupgt.experiment.plan import plan
    from groupgt.render.exports import json_text
    from groupgt.report.experiment import summary
    from groupgt.report.gates import junit_report
    from groupgt.report.gates import reason as gate_reason
    from groupgt.report.run import run_experiment
    from groupgt.report.times import ways_to_keep
    from groupgt.report.tracking import tracked_pairs
    from groupgt.store.files import write_text

    for option, path in zip([*REPORTS, "--metrics-json"], (junit, summary_path, metrics_json)):
        if path is not None and path.is_dir():
            raise ConfigError(f"{option} {path}: expected a file, found a folder")
    if traceback:
        os.environ[TRACEBACK] = "1"
    if dry_run:
        made = plan(config, **choices)
        if metrics_json is not None:
            # Names can be checked before there are means.
            unmeasured = dict.fromkeys(made.experiment.metrics)
            tracked_pairs(dict.fromkeys(made.experiment.pairs(), unmeasured), several=len(made.datasets) > 1)
        _show_plan(made, against, style, allow_no_previous=allow_no_previous)
        return
    try:
        choices |= {"against": against, "allow_no_previous": allow_no_previous}
        outcome = run_experiment(config, output=output, jobs=jobs, progress=bar, **choices)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignores further interrupts
        bar.ended()
        what = "interrupted; finished retrievals are cached"
        out.say(f"{what}. Add --resume to continue with stored answers")
        raise SystemExit(130) from None
    _show_outcome(outcome, style)
    out.write_file(summary_path, lambda path: write_text(path, summary(outcome) + "\n"))
    out.write_file(metrics_json, lambda path: write_text(path, json_text(outcome.to_metrics()) + "\n"))
    out.write_file(junit, lambda path: write_text(path, junit_report(outcome) + "\n"))
    page = " (open report.html)" if outcome.folder is not None and (outcome.folder / "report.html").is_file() else ""
    hide = outcome.experiment.hide
    out.say(hide.message(f"wrote results to {outcome.folder}{page}" if outcome.folder else "wrote no result folder"))
    if hint := ways_to_keep(outcome):
        out.say(hide.sure(hint))
    for gate in outcome.gates:
        if not gate.passed:
            out.say(hide.sure(f"gate {gate.gate} failed: {gate_reason(gate)}"))
    if not outcome.passed:
        raise SystemExit(2 if all(gate.passed for gate in outcome.gates) else 1)


def _show_plan(made: Any, against: Path | None, style: str, *, allow_no_previous: bool) -> None:
    """Print what a run would do, what was not checked, and what the gates can detect."""
    from groupgt.report.detectable import in_experiment
    from groupgt.report.previous import will_compare
    from groupgt.report.times import could_resume
    from groupgt.results.previous import read_previous

    experiment = made.experiment
    previous = None if against is None else read_previous(against, experiment, allow_none=allow_no_previous)
    out.show_rows(made.headers, made.rows, style)
    if style not in ("json", "csv") and any(row[made.headers.index("calls")] for row in made.rows):
        out.show("calls: batches of queries (of pairs for a labeller), plus queries run one by one to measure latency")
    for text in made.unchecked:
        out.say(f"not checked without --allow-code: {text}")
    if made.left is not None:
        out.say(experiment.hide.sure(could_resume(made.left)))
    if previous is not None:
        out.say(experiment.hide.sure(will_compare(previous, experiment)))
    for line in in_experiment(experiment, made.datasets, against if previous is not None and previous.name else None):
        out.show_beside(experiment.hide.sure(line), style)


def _show_outcome(outcome: Any, style: str) -> None:
    from groupgt.report.experiment import items
    from groupgt.report.results import means_grid, results_of, timings_of
    from groupgt.report.times import from_cache, reused

    if style == "json":
        out.show_json({**results_of(outcome), "times": timings_of(outcome)})
    elif style == "csv":
        out.show_csv(*means_grid(outcome))
    else:
        line = outcome.experiment.hide.sure(from_cache(outcome))
        # Results that were not examined matter; results that are the same as new ones do not.
        below = [line if reused(outcome) else Detail(line)] if line else []
        out.show_document([*items(outcome, timed=True), *below], style, outcome.experiment.title)


@command("report")
@click.argument("folders", nargs=-1, required=True, type=out.FILE)
@click.option(
    "--history", "as_history", is_flag=True, help="Show how the best system changed over time, with one row per run."
)
@click.option(
    "--metric",
    "-m",
    metavar="METRIC",
    help="Show only this metric (default: all metrics or, with --history, the primary metric).",
)
@click.option("--baseline", metavar="NAME", help="Compare with this system.")
@out.written_option("--html", "page", help="Write an HTML report of the comparison as one self-contained page.")
@setting_options("test", "correction", "alpha", "seed", overriding=True)
@SORT
@out.format_option
@out.details_option
@out.Waiting()
def report_command(
    folders: tuple[Path, ...],
    as_history: bool,
    metric: str | None,
    baseline: str | None,
    page: Path | None,
    sort: str | None,
    style: str,
    **settings: Any,
) -> None:
    """Merge result FOLDERS from `groupgt run` into one comparison, or show the history of one experiment.

    FOLDER/<name> selects all result folders inside it, and FOLDER/<name>/latest only the newest. All folders must have
    the same ground truth. Test, correction, alpha and seed default to the values in the folders.
    """
    from groupgt.render.page.page import page_bytes
    from groupgt.report.contrasts import described
    from groupgt.report.merged import merged_page
    from groupgt.results.folder import folders_of, read_folders
    from groupgt.results.merge import compared_metrics, history, merged, settings_of
    from groupgt.store.files import write_bytes

    for option, value in (("--html", page), ("--sort", sort)):
        if as_history and value is not None:
            raise ConfigError(f"{option}: cannot be combined with --history")
    results = read_folders(folders_of(folders))
    chosen = replace(settings_of(results), **{name: value for name, value in settings.items() if value is not None})
    if as_history:
        if len({result.name for result in results}) > 1:
            names = ", ".join(dict.fromkeys(result.name for result in results))
            raise ConfigError(f"--history: expected result folders of one experiment, found {names}")
        if baseline is not None:
            what = "--baseline: cannot be combined with --history, which compares each run with the previous run"
            raise ConfigError(what)
        policy = results[-1].manifest.policy
        audited = dict.fromkeys(result.is_audited for result in results)
        how = " or ".join(described(chosen, "audit" if each else "") for each in audited)
        footer = f"change and p ({how}; not corrected) compare each run with the previous run; policy {policy}"
        _show_history(history(results, chosen, metric), style, footer)
        return
    comparisons = merged(results, chosen, baseline, [metric] if metric else (), compared_metrics(results))
    if sort is not None:
        comparisons = {dataset: comparison.sorted_by(sort) for dataset, comparison in comparisons.items()}
    out.write_file(page, lambda path: write_bytes(path, page_bytes(merged_page(comparisons, results, metric))))
    if style == "json":
        out.show_json({dataset: comparison.to_dict() for dataset, comparison in comparisons.items()})
    elif style == "csv":
        out.show_csv(*stacked((dataset, comparison.csv_rows()) for dataset, comparison in comparisons.items()))
    else:
        blocks: list[Item] = []
        for dataset, comparison in comparisons.items():
            blocks += [f"dataset {dataset}"] if len(comparisons) > 1 else []
            blocks += comparison.blocks()
        out.show_document(blocks, style)


def _show_history(grids: dict[str, Grid], style: str, footer: str) -> None:
    if style == "json":
        out.show_json({name: [dict(zip(headers, row)) for row in rows] for name, (headers, rows) in grids.items()})
        return
    if style == "csv":
        out.show_csv(*stacked(grids.items()))
        return
    blocks: list[Item] = []
    for dataset, (headers, rows) in grids.items():
        lines = [[*row[:-3], signed(row[-3]), small(row[-2]), row[-1]] for row in rows]
        blocks += [f"dataset {dataset}", (headers, lines)] if len(grids) > 1 else [(headers, lines)]
    out.show_document([*blocks, footer], style)


@command("init")
@click.argument("folder", metavar="[DIR]", type=out.FILE, default=Path())
@out.file_option(
    "--from-autorag",
    "project",
    metavar="PROJECT",
    help="Write an experiment that re-evaluates the stored results of this AutoRAG project.",
)
def init_command(folder: Path, project: Path | None) -> None:
    """Create a starter experiment in DIR (default: current folder) and explain what to edit.

    With --from-autorag, create the experiment from an AutoRAG project. The output shows how many of the project's
    stored means the experiment reproduces, and which nodes it omits.
    """
    if project is not None:
        from groupgt.cli.truth import import_autorag

        folder.mkdir(parents=True, exist_ok=True)
        import_autorag(project, folder / "experiment.yaml")
        return
    from groupgt.experiment.starter import FILES, write_starter

    for path in write_starter(folder):
        out.show(f"{path}: {FILES[path.name]}")
    out.show("the coverage convention counts each group once; use autorag or trec for AutoRAG's or trec_eval's numbers")
    out.show(f"now run: groupgt run {folder / 'experiment.yaml'}")


@command("cache")
@click.argument("place", metavar="[CONFIG|FOLDER]", type=out.FILE, default=CACHE)
@click.option("--clear", is_flag=True, help="Delete the listed runs.")
@out.repeatable_option("--only", metavar="SYSTEM", help="List only these systems (name or pattern); repeatable.")
@out.format_option
def cache_command(place: Path, clear: bool, only: tuple[str, ...], style: str) -> None:
    """List or clear the cached runs that CONFIG would use, or all runs in a cache folder."""
    from groupgt.experiment.cache import Used
    from groupgt.experiment.systems import matching
    from groupgt.store.cache import Cache

    secrets: dict[str, str] = {}
    with private_messages(secrets):
        is_folder = place.is_dir() or place == CACHE
        used = Used(Cache(place), list(Cache(place).entries())) if is_folder else Used.by(place, secrets)
        hide = Hide(secrets).message
        cache, entries = used.cache, used.entries
        systems = {str(entry.about.get("system", "")) for entry in entries}
        chosen: set[str] = set()
        for pattern in only:
            matches = matching(pattern, systems)
            if not matches:
                raise ConfigError(f"--only {pattern}: no cached run matches{near_names(pattern, systems)}")
            chosen.update(matches)
        entries = [entry for entry in entries if not only or str(entry.about.get("system", "")) in chosen]
        if clear and cache is not None:
            for entry in entries:
                cache.remove(entry.key)
            out.say(f"removed {counted(len(entries), 'run')}, {sum(entry.size for entry in entries):,} bytes")
            return
        if used.others and cache is not None:
            more = counted(used.others, "more cached run", "more cached runs")
            verb = "does" if used.others == 1 else "do"
            where = f"list all runs with: groupgt cache {cache.folder}"
            out.say(hide(f"{more} of this experiment {verb} not match its current configuration; {where}"))
        headers = ["experiment", "dataset", "system", "uses", "depth", "questions", "answered", "made", "bytes", "key"]
        keys = ("experiment", "dataset", "system", "use", "depth", "questions", "rows", "made")
        rows = [[*(entry.about.get(key, "damaged") for key in keys), entry.size, entry.key[:12]] for entry in entries]
        if not rows:
            out.say(hide("no cached runs" + ("" if cache is None else f" in {cache.folder}")))
        if rows or style in ("json", "csv"):
            out.show_rows(headers, sorted(rows, key=str), style, keep=3)


@command("schema")
def schema_command() -> None:
    """Print the JSON Schema of experiment files, which editors use to complete and check them."""
    from groupgt.experiment.json_schema import schema_text

    click.echo(schema_text(), nl=False)
