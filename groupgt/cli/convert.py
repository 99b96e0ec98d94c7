"""`groupgt convert`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.cli.writing import write_truth
from groupgt.engines.rankings import all_rankings
from groupgt.errors import ConfigError, listed
from groupgt.evaluation.request import as_ground_truth
from groupgt.formats.detect import kind_of, read_run
from groupgt.formats.source import Source
from groupgt.formats.write import FLAT, RUN_WRITERS, TRUTH_WRITERS, write_run
from groupgt.model.policy import Policy
from groupgt.store.files import written_whole


@click.command("convert")
@click.argument("source", metavar="IN", type=options.FILE)
@click.argument("target", metavar="OUT", type=options.FILE)
@click.option(
    "--to",
    "to",
    required=True,
    help=f"{', '.join([*TRUTH_WRITERS, FLAT])} (ground truth); {', '.join(RUN_WRITERS)} (results); "
    "experiment (an AutoRAG project).",
)
@click.option("--from", "given", help="The format of IN, where it is not to be detected; trec-subtopics, say.")
@click.option("--kind", type=click.Choice(["truth", "run"]), help="What IN holds, where it is not to be detected.")
@click.option("--truth", type=options.FILE, help="The ground truth whose queries results without qid follow.")
@options.policy_option
def command(
    source: Path | Source,
    target: Path,
    to: str,
    given: str | None,
    kind: str | None,
    truth: Path | None,
    policies: tuple[str, ...],
) -> None:
    """Convert ground truth or results from one format to another, or an AutoRAG project to an experiment file."""
    if to == "experiment":
        _import(Path(source), target)
        return
    options.check_outputs([Path(source), *([truth] if truth else [])], [target])
    policy = Policy.of(options.split_policy(policies))
    source = Source.at(source)
    if (kind or ("truth" if given in ("trec-subtopics", "beir") else kind_of(source))) == "truth":
        grouped = as_ground_truth(source, policy, given)
        write_truth(target, grouped, to)
        return
    if to not in RUN_WRITERS:
        raise ConfigError(f"--to: expected {listed(RUN_WRITERS)} for results, found {to!r}")
    qids = as_ground_truth(truth, policy).qids if truth else None
    run = read_run(source, given, qids=qids)
    rankings = []
    scored = True
    for qid, (ids, scores) in all_rankings(run, policy):
        scored = scored and scores is not None
        own = list(scores) if scores is not None else [1 / rank for rank in range(1, len(ids) + 1)]
        rankings.append((qid, ids, own))
    written_whole(target, lambda part: write_run(part, rankings, to, scored=scored, tag=run.name or "groupgt"))
    click.echo(f"groupgt: wrote {len(rankings):,} queries to {target}", err=True)


def _import(project: Path, target: Path) -> None:
    from groupgt.experiment.autorag import import_project

    if target.exists():
        raise ConfigError(f"{target}: there already; name another file")
    found = import_project(project, target)
    click.echo(f"groupgt: wrote {found.systems:,} systems to {target}; run it with: groupgt run {target}", err=True)
    same = found.means - len(found.different)
    click.echo(f"groupgt: {same:,} of the {found.means:,} means that AutoRAG stored come out again", err=True)
    for line in found.different:
        click.echo(f"groupgt: warning: {line}", err=True)
