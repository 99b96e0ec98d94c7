"""`groupgt check`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.curation.check import check_duplicates, check_run, check_truth
from groupgt.errors import ConfigError
from groupgt.evaluation.request import Request, as_ground_truth
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import all_there
from groupgt.model.policy import Policy
from groupgt.render import tables


@click.command("check")
@options.truth_argument
@click.argument("runs", nargs=-1, type=options.FILE)
@options.policy_option
@options.corpus_option
@click.option(
    "--near-duplicates",
    is_flag=True,
    help="Look in the corpus for passages that nearly equal a judged alternative and are not judged.",
)
@click.option("--threshold", type=float, default=0.9, show_default=True, help="The least similarity of these.")
@options.allow_code_option
@options.truth_format_option
@options.parts_option
@options.labeller_options
@click.option("--run-format", help="The format of the runs, where it is not to be detected.")
@options.format_option
def command(
    truth: Path,
    runs: tuple[Path, ...],
    policies: tuple[str, ...],
    corpus: Path | None,
    near_duplicates: bool,
    threshold: float,
    allow_code: bool,
    truth_format: str | None,
    in_parts: bool,
    labeller: str,
    settings: tuple[str, ...],
    run_format: str | None,
    style: str,
) -> None:
    """Say what is wrong or doubtful in TRUTH and RUNS, without scoring anything."""
    tables.check_style(style, "json", "csv")
    policy = Policy.of(options.split_policy(policies))
    paths = all_there(truth, runs, in_parts=in_parts)
    grouped = as_ground_truth(truth, policy, truth_format)
    judge = options.labeller_from(labeller, settings, corpus, allow_code=allow_code)
    request = Request.of(policy=policy, labeller=judge, run_format=run_format)
    findings = {str(truth): check_truth(grouped)}
    if near_duplicates:
        if corpus is None:
            raise ConfigError("--near-duplicates: needs the texts; name them with --corpus")
        findings[str(truth)].append(check_duplicates(grouped, read_corpus(corpus), threshold))
    for path in paths:
        findings[str(path)] = check_run(grouped, path, request)
    if style == "json":
        rows = {title: [vars(each) for each in own] for title, own in findings.items()}
        click.echo(tables.json_text(rows))
        return
    headers = ["file", "finding", "count", "example"]
    cells: list[list[tables.Cell]] = [
        [title, each.what, each.count, each.example] for title, own in findings.items() for each in own
    ]
    if style == "csv":
        click.echo(tables.csv_text(headers, cells).rstrip("\n"))
        return
    for title, own in findings.items():
        click.echo(title)
        click.echo(tables.table(headers[1:], [[each.what, each.count, each.example] for each in own], style) + "\n")
