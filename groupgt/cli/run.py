"""`groupgt run`."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from groupgt.cli import options
from groupgt.cli.progress import Bar
from groupgt.errors import ConfigError
from groupgt.experiment.display import report, times
from groupgt.experiment.outcome import Outcome
from groupgt.experiment.plan import plan
from groupgt.experiment.results import means_grid, results_of, timings_of
from groupgt.experiment.runner import run_experiment
from groupgt.render import tables
from groupgt.render.exports import junit_text
from groupgt.store.files import write_text


@click.command("run")
@click.argument("config", type=options.FILE)
@click.option(
    "--check", is_flag=True, help="Check everything that can be checked without retrieving, and print the plan."
)
@click.option(
    "--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change one value, such as evaluate.k=[5]; repeatable."
)
@click.option(
    "--only", multiple=True, metavar="SYSTEM", help="Report these systems alone: a name, or a pattern; repeatable."
)
@click.option("--jobs", type=click.IntRange(1, 1024), default=1, metavar="N", help="Processes that retrieve at once.")
@click.option("--refresh", is_flag=True, help="Retrieve again what is kept from earlier runs.")
@click.option("--allow-code", is_flag=True, help="Let the file run code: `use: python`, and scripts that build data.")
@click.option("--output", type=options.FILE, help="The folder for results, instead of the file's own.")
@click.option("--junit", type=options.FILE, help="Write the gates to this file, as JUnit XML.")
@options.format_option
def command(
    config: Path,
    check: bool,
    changes: tuple[str, ...],
    only: tuple[str, ...],
    jobs: int,
    refresh: bool,
    allow_code: bool,
    output: Path | None,
    junit: Path | None,
    style: str,
) -> None:
    """Run the experiment described in CONFIG: retrieve, evaluate, print the tables, write the results."""
    tables.check_style(style, "json", "csv")
    if junit is not None and junit.is_dir():
        raise ConfigError(f"--junit {junit}: expected a file, found a folder")
    if check:
        headers, rows = plan(config, changes=changes, only=only, refresh=refresh, allow_code=allow_code)
        click.echo(tables.shown(headers, rows, style))
        return
    bar = Bar()
    try:
        outcome = run_experiment(
            config,
            output=output,
            changes=changes,
            only=only,
            jobs=jobs,
            refresh=refresh,
            allow_code=allow_code,
            progress=bar,
        )
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
        bar.ended()
        click.echo("groupgt: stopped; what is retrieved is kept, and the same command goes on from there", err=True)
        raise SystemExit(130) from None
    _print(outcome, style)
    if junit is not None:
        cases = [
            (f"{gate.dataset}.{gate.system}", f"gate {gate.gate}: {gate.metric}", None if gate.passed else gate.reason)
            for gate in outcome.gates
        ]
        write_text(junit, junit_text(outcome.experiment.config.name, cases) + "\n")
    kept = f"; {outcome.cached:,} of {outcome.cached + outcome.retrieved:,} retrievals were kept from earlier runs"
    if outcome.cached_live:
        kept += f" ({outcome.cached_live:,} of code or services that may have changed; --refresh asks again)"
    click.echo(f"groupgt: results are in {outcome.folder}{kept if outcome.cached else ''}", err=True)
    for gate in outcome.gates:
        if not gate.passed:
            click.echo(f"groupgt: gate {gate.gate} failed: {gate.reason}", err=True)
    if not outcome.passed:
        raise SystemExit(1)


def _print(outcome: Outcome, style: str) -> None:
    if style == "json":
        click.echo(tables.json_text({**results_of(outcome), "times": timings_of(outcome)}))
    elif style == "csv":
        click.echo(tables.csv_text(*means_grid(outcome)).rstrip("\n"))
    else:
        click.echo(report(outcome, style))
        if text := times(outcome, style):
            click.echo(f"\n{text}")
