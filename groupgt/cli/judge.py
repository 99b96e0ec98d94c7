"""Commands for judging by hand: `groupgt judge` and `groupgt sample`."""

from __future__ import annotations

import getpass
import json
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

import click

from groupgt.cli.help import command
from groupgt.cli.output import FILE, default_option, file_option, say, written_option
from groupgt.engines.carriers import all_rankings
from groupgt.errors import ConfigError, DataError, GroupgtError, first_of
from groupgt.evaluation.inputs import as_ground_truth
from groupgt.formats.corpus import read_corpus, read_queries
from groupgt.formats.detect import kind_of, read_run, run_paths
from groupgt.formats.journals import OPEN, Act, QueryState, read_acts, replayed, same_groups, truth_of
from groupgt.formats.source import Source
from groupgt.formats.write import write_ground_truth
from groupgt.judge.log import ActLog, read_folder
from groupgt.judge.pool import Index, PoolRule
from groupgt.judge.session import Plan, Session
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.policy import Policy
from groupgt.model.sample import SAMPLE, entry, sample_of
from groupgt.render.tables import counted
from groupgt.store.files import write_atomically, write_text

ADJUDICATED = "adjudicated"


@command("judge")
@click.argument("queries", type=FILE, required=False)
@file_option("--corpus", help="The passages: JSONL, parquet or CSV, or a BEIR folder.")
@file_option("--runs", multiple=True, help="Runs to pool; repeatable.")
@written_option("--out", required=True, help="Ground truth file to write from the journals (.jsonl).")
@file_option("--journal", help="Folder of journals, one per annotator (default: OUT with .journal).")
@click.option("--by", help="Your name in the journal (default: your login name).")
@click.option("--pool", metavar="WAY:N", help="depth:N, rrf:N or bm25:N (default: depth:10, or bm25:20).")
@click.option(
    "--sample", "size", type=click.IntRange(min=1), help="Judge a random sample of N queries, in a fixed order."
)
@default_option("--seed", type=int, default=0, help="Random seed for the sample and the order of passages.")
@click.option(
    "--next",
    "following",
    type=click.Choice(["pool", "rrf"]),
    help="Order of the queries (default: as in the file).",
)
@file_option("--audit", help="Existing ground truth to check for missing alternatives and needless groups.")
@file_option("--prior", help="Prior judgments to start from, such as a model's.")
@click.option("--blind", is_flag=True, help="Show prior judgments only after your own.")
@file_option("--adjudicate", nargs=2, metavar="A B", help="Two journals with differences to resolve.")
@click.option("--spans", is_flag=True, help="Write marked words as spans instead of passage ids.")
@click.option("--export", is_flag=True, help="Write OUT from all journals, without opening the page.")
@default_option("--port", type=click.IntRange(0, 65535), default=0, help="Port; 0 picks a free one.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def judge_command(
    queries: Path | None,
    corpus: Path | None,
    runs: tuple[Path, ...],
    out: Path,
    journal: Path | None,
    by: str | None,
    pool: str | None,
    size: int | None,
    seed: int,
    following: str | None,
    audit: Path | None,
    prior: Path | None,
    blind: bool,
    adjudicate: tuple[Path, Path] | None,
    spans: bool,
    export: bool,
    port: int,
    no_browser: bool,
) -> None:
    """Judge passages on a local page, by keyboard, and write grouped ground truth.

    QUERIES is a file of queries, or ground truth with query texts. Every judgment is saved immediately; run the
    same command again to continue. With --audit, the page asks about existing ground truth instead.
    """
    folder = journal or out.with_suffix(".journal")
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: expected a file that ends in .jsonl")
    base = _existing(audit or queries)
    if export:
        _write(out, truth_of(read_folder(folder), base=base, spans=spans))
        return
    if corpus is None:
        raise ConfigError("--corpus: expected the passages to judge")
    if queries is None and audit is None:
        raise ConfigError("QUERIES: expected a file of queries, or --audit with ground truth to audit")
    if queries is not None and audit is not None:
        raise ConfigError(
            f"QUERIES: --audit has the queries; remove {queries} (give each run with a --runs of its own)"
        )
    if out.exists() and not any(folder.glob("*.jsonl")):
        raise ConfigError(f"--out {out}: already exists, and was not made from {folder}; choose another file")
    clashes = {
        "--next: the order of a sample is fixed; remove --next or --sample": size and following,
        "--blind: needs --prior": blind and not prior,
        "--audit: cannot be combined with --prior or --adjudicate": audit and (prior or adjudicate),
        "--adjudicate: cannot be combined with --prior or --sample": adjudicate and (prior or size),
    }
    for message, is_clash in clashes.items():
        if is_clash:
            raise ConfigError(message)
    if audit is not None and pool is None:
        # The order of all questions shows what to ask; in a sample, every query is gone through.
        pool = f"bm25:{50 if size is None else 10}"
    rule = PoolRule.of(pool, has_runs=bool(runs))
    texts = _texts(base, queries or audit)
    opinions: dict[str, Mapping[str, QueryState]] = {}
    other_acts: dict[str, list[Act]] = {}
    if adjudicate is not None:
        other_acts, opinions, texts = _opinions(adjudicate, texts)
    plan = Plan(
        kind="audit" if audit is not None else "adjudicate" if adjudicate is not None else "judge",
        queries=texts,
        index=Index(read_corpus(corpus)),
        pool=rule,
        runs=[
            {qid: ids for qid, (ids, _) in all_rankings(read_run(path), Policy())}
            for path in chain.from_iterable(map(run_paths, runs))
        ],
        truth=base,
        prior=None if prior is None else as_ground_truth(prior, Policy()),
        blind=blind,
        sample=None if size is None else sample_of(list(texts), size, seed),
        seed=seed,
        next=following,
        opinions=opinions,
    )
    log = ActLog(folder, by or (ADJUDICATED if adjudicate is not None else _login()))
    try:
        session = Session(plan, log)

        def save(*, silent: bool = True) -> None:
            unsettled: list[str] | None = None if adjudicate is None else []
            acts = {**other_acts, log.by: log.acts}
            _write(out, truth_of(acts, base=base, spans=spans, unsettled=unsettled), silent=silent)
            if unsettled and not silent:
                left = f"{counted(len(unsettled), 'query', 'queries')} still to settle: {first_of(unsettled, 5)}"
                say(f"{left}; run the command again to go on")

        _serve(session, port, save, browser=not no_browser)
        save(silent=False)
    finally:
        log.close()


@command("sample")
@click.argument("queries", type=FILE)
@click.option("--size", type=click.IntRange(min=1), required=True, help="Number of queries.")
@default_option("--seed", type=int, default=0, help="Random seed for the sample.")
@written_option("--out", required=True, help="File to write (.jsonl), one query per line.")
def sample_command(queries: Path, size: int, seed: int, out: Path) -> None:
    """Draw a random sample of queries to judge elsewhere, and record how it was drawn.

    QUERIES is a file of queries, or ground truth with query texts. Add retrieval_gt to the lines in order, starting
    with the first. You can stop at any line: the lines judged so far are a random sample, which groupgt evaluate
    --audit accepts.
    """
    if out.suffix != ".jsonl":
        raise ConfigError(f"--out {out}: expected a file that ends in .jsonl")
    texts = _texts(_existing(queries), queries)
    sample = sample_of(list(texts), size, seed)
    lines = [{"qid": qid, "query": texts[qid], SAMPLE: entry(sample, qid)} for qid in sample["order"]]
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    say(f"wrote {counted(size, 'query', 'queries')} of {len(texts):,} to {out}")


def _existing(path: Path | None) -> GroundTruth | None:
    """Returns the ground truth in a file, or None if it contains none."""
    if path is None:
        return None
    try:
        is_truth = kind_of(path) == "truth"
    except GroupgtError:
        return None
    return as_ground_truth(path, Policy()) if is_truth and b"retrieval_gt" in Source.at(path).head() else None


def _texts(base: GroundTruth | None, path: Path | None) -> dict[str, str]:
    if base is None:
        return {} if path is None else read_queries(path)
    if not base.texts or any(text is None for text in base.texts):
        raise DataError(f"{path}: expected the text of every query, under the key query")
    return {qid: text or "" for qid, text in zip(base.qids, base.texts)}


def _opinions(
    paths: tuple[Path, Path], texts: dict[str, str]
) -> tuple[dict[str, list[Act]], dict[str, Mapping[str, QueryState]], dict[str, str]]:
    """Returns the acts and states of two annotators, and the queries that both finished with different groups."""
    acts: dict[str, list[Act]] = {}
    for path in paths:
        for by, annotator_acts in read_acts(Source.at(path)).items():
            if by in acts:
                raise DataError(f"{path}: expected acts by another annotator than {by!r}")
            acts[by] = annotator_acts
    if len(acts) != len(paths):
        raise DataError(f"--adjudicate: expected the journals of two annotators, found {len(acts)}")
    states = {
        by: {qid: state for qid, state in replayed(annotator_acts).items() if state.status != OPEN}
        for by, annotator_acts in acts.items()
    }
    first, second = states.values()
    differing = [qid for qid in texts if qid in first and qid in second and not same_groups(first[qid], second[qid])]
    if not differing:
        raise ConfigError("--adjudicate: the two agree on every query that both finished; nothing to settle")
    return acts, dict(states), {qid: texts[qid] for qid in differing}


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise ConfigError("--by: expected your name, as there is no login name") from None


def _serve(session: Session, port: int, save: Callable[[], None], *, browser: bool) -> None:
    from groupgt.judge.server import serve

    def ready(address: str) -> None:
        view = session.overview()
        if (queue := view["queue"]) is not None:
            say(f"{queue['answered']:,} of {counted(queue['of'], 'question')} answered; Ctrl-C ends")
        else:
            say(f"{view['finished']:,} of {counted(len(view['queries']), 'query', 'queries')} finished; Ctrl-C ends")
        say(address)
        if browser:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):  # how it ends
        serve(session, port, ready, save)


def _write(out: Path, truth: GroundTruth, *, silent: bool = False) -> None:
    write_atomically(out, lambda part: write_ground_truth(part, truth, "jsonl"))
    if not silent:
        skipped = sum(value is not None for value in truth.columns.get("skipped", []))
        left = f", {skipped:,} of them skipped" if skipped else ""
        say(f"wrote {counted(len(truth), 'query', 'queries')} to {out}{left}")
