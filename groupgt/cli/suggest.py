"""`groupgt suggest`."""

from __future__ import annotations

from pathlib import Path

import click

from groupgt.cli import options
from groupgt.errors import ConfigError, listed
from groupgt.evaluation.sources import as_ground_truth
from groupgt.evaluation.suggested import HEADERS, accepted, near_duplicates, rows_of
from groupgt.formats.corpus import read_corpus
from groupgt.formats.detect import all_there
from groupgt.formats.write import TRUTH_WRITERS, write_ground_truth
from groupgt.model.policy import Policy
from groupgt.render.export import write_rows
from groupgt.store.files import written_whole

__all__ = ["command"]


@click.command("suggest")
@options.truth_argument
@click.option("--out", type=options.FILE, required=True, help="The file to write: candidates, or the ground truth.")
@options.corpus_option
@click.option("--threshold", type=float, default=0.9, show_default=True, help="The least similarity of a candidate.")
@click.option("--accept", type=options.FILE, help="A reviewed file of candidates: those marked are taken up.")
@options.policy_option
@options.truth_format_option
def command(
    truth: Path,
    out: Path,
    corpus: Path | None,
    threshold: float,
    accept: Path | None,
    policies: tuple[str, ...],
    truth_format: str | None,
) -> None:
    """Propose alternatives for review: passages that nearly equal one that is judged and are not judged themselves.

    First with --corpus: writes the candidates with their evidence (.csv or .jsonl). Then, once the column accept says
    yes where they are meant, with --accept: writes the ground truth with these and no others.
    """
    if (corpus is None) == (accept is None):
        raise ConfigError("expected --corpus, to write candidates, or --accept, to take up those that were marked")
    policy = Policy.of(options.split_policy(policies))
    all_there(truth, [])
    grouped = as_ground_truth(truth, policy, truth_format)
    if corpus is not None:
        if out.suffix.lower() not in (".csv", ".jsonl"):
            raise ConfigError(f"--out {out}: expected a file of candidates that ends in .csv or .jsonl")
        options.check_outputs([truth, corpus], [out])
        if out.exists():
            raise ConfigError(f"--out {out}: there already, and what was marked in it would be lost; name another file")
        candidates = near_duplicates(grouped, read_corpus(corpus), threshold)
        written_whole(out, lambda part: write_rows(part, HEADERS, rows_of(candidates), out.suffix))
        queries = len({each.qid for each in candidates})
        click.echo(f"groupgt: wrote {len(candidates):,} candidates of {queries:,} queries to {out}", err=True)
        return
    if accept is None:
        return
    kind = out.suffix.lower().removeprefix(".")
    if kind not in TRUTH_WRITERS:
        raise ConfigError(f"--out {out}: expected a file that ends in {listed(f'.{each}' for each in TRUTH_WRITERS)}")
    options.check_outputs([truth, accept], [out])
    extended, taken, left = accepted(grouped, accept)
    missing: list[str] = []
    written_whole(out, lambda part: missing.extend(write_ground_truth(part, extended, kind)))
    click.echo(
        f"groupgt: took up {taken:,} candidates, left {left:,}; wrote {len(extended):,} queries to {out}", err=True
    )
    if missing:
        click.echo(f"groupgt: warning: {kind} has no place for {listed(missing)}", err=True)
