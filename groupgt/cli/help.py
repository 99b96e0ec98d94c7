"""Help texts for commands: examples first, then the options, in groups if there are many."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

# Commands with more options than this show them in groups.
UNGROUPED_OPTIONS = 10
# Options by topic. Options of a single command come first, under `Options`.
GROUPS = {
    "Metrics": ("--metric", "-m", "-k", "--by", "--convention"),
    "Statistics": (
        *("--baseline", "--primary", "--across", "--against", "--test", "--correction", "--alpha", "--confidence"),
        *("--resamples", "--seed", "--pairs", "--difference", "--power"),
    ),
    "Input": (
        *("--truth-format", "--columns", "--where", "--policy", "--run-format", "--tool-span", "--scores", "--parts"),
        *("--memory", "--names", "--system", "--runs", "--dataset", "--labeller", "--with", "--corpus", "--allow-code"),
        *("--tokenizer", "--audit", "--assume-random", "--annotator"),
    ),
    "Output": (
        *("--out", "--per-query", "--failures", "--html", "--junit", "--summary", "--metrics-json", "--report"),
        *("--title", "--size", "--digits", "--format", "--wide", "--color", "--details", "--help"),
    ),
}
# What `-h` shows of a command with groups: the first of these that it has.
USED_MOST = (
    *("--metric", "-m", "-k", "--convention", "--baseline", "--near-duplicates", "--write", "--unit", "--query"),
    *("--history", "--from", "--to", "--kind", "--truth", "--accept", "--dry-run", "--set", "--only", "--runs"),
    *("--by", "--corpus", "--columns", "--html", "--per-query", "--out", "--format", "--sort", "--labeller"),
    *("--against", "--allow-code"),
)
MOST_SHOWN = 10
# What follows the name of a command.
EXAMPLES = {
    "run": ("experiment.yaml", "experiment.yaml --dry-run --set seed=7"),
    "evaluate": ("qa.jsonl bm25.trec -m recall@5,ndcg@10", "qa.jsonl bm25.trec dense.jsonl -m mrr"),
    "compare": (
        "qa.jsonl bm25.trec dense.jsonl -m ndcg@10",
        "qa.jsonl old=bm25.trec new=dense.jsonl -m ndcg@10,mrr --primary mrr",
    ),
    "explain": ("qa.jsonl bm25.trec -m ndcg@3 --query q1", "qa.jsonl bm25.trec -m mrr,map -k 3 --query q2"),
    "correlate": ("qa.jsonl other.jsonl runs -m ndcg@10", "qa.jsonl runs -m ndcg@10,mrr"),
    "misses": ("qa.jsonl bm25.trec -k 5", "qa.jsonl bm25.trec dense.jsonl --worst 20"),
    "depth": ("qa.jsonl bm25.trec --share 80%,95%", "qa.jsonl bm25.trec dense.jsonl"),
    "stages": (
        "qa.jsonl bm25.trec@100 dense.jsonl@10",
        "qa.jsonl retrieved=bm25.trec reranked=dense.jsonl --by n_groups",
    ),
    "outcomes": ("qa.jsonl bm25.trec answers.csv -k 10", "qa.jsonl bm25.trec answers.csv --oracle gold.jsonl"),
    "convert": ("bm25.trec run.jsonl --to jsonl", "qa.jsonl qa.parquet --to parquet"),
    "identify": ("qa.jsonl bm25.trec 0.6667", "qa.jsonl bm25.trec 0.6667 -m recall"),
    "power": (
        "qa.jsonl bm25.trec dense.jsonl -m ndcg@10",
        "qa.jsonl bm25.trec dense.jsonl -m ndcg@10 --difference 0.02",
    ),
    "report": ("results/a results/b --html report.html", "results --history"),
    "plot": (
        "means qa.jsonl bm25.trec dense.jsonl -m ndcg@10 -o means.svg",
        "groups qa.jsonl bm25.trec -m ndcg@10 -o groups.html",
    ),
    "judge": (
        "queries.tsv --corpus corpus.jsonl --runs bm25.trec --out truth.jsonl",
        "--audit qa.jsonl --corpus corpus.jsonl --sample 3 --out audited.jsonl",
    ),
    "check": ("qa.jsonl bm25.trec", "qa.jsonl --corpus corpus.jsonl", "experiment.yaml"),
    "rechunk": ("qa.jsonl --from old.csv --to new.csv -o new.jsonl", "qa.jsonl --from old.csv -o spans.jsonl"),
    "agree": (
        "qa.jsonl --annotator other.jsonl",
        "qa.jsonl bm25.trec --labeller id --other text --corpus corpus.jsonl",
    ),
}
# What other tools call an option.
OTHER_NAMES = {"--slice": "--by", "--slices": "--by", "--group-by": "--by"}
# What to write for an argument that is missing.
MISSING = {
    "check": "Name the ground truth or an experiment file. In .pre-commit-config.yaml, write "
    "- {id: groupgt-check, args: [experiment.yaml]}"
}


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write example commands as users would type them."""
    if examples:
        with formatter.section("Examples"):
            formatter.write_text("\b\n" + "\n".join(f"groupgt {example}" for example in examples))


class Command(click.Command):
    """A command that groups the options in its help text, and never overwrites a file that it reads."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line. `-h` shows a short help text."""
        if "-h" in args and "--help" not in args and len(self.params) > UNGROUPED_OPTIONS:
            click.echo(self._short_help(ctx))
            ctx.exit()
        try:
            self._refuse_repeats(ctx, args)
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            raise click.MissingParameter(MISSING.get(self.name or ""), error.ctx, error.param) from None
        except click.NoSuchOption as error:
            ours = OTHER_NAMES.get(error.option_name, "")
            if any(ours in parameter.opts for parameter in self.params):
                raise click.UsageError(f"No such option {error.option_name!r}. Did you mean {ours}?", ctx) from None
            raise

    def _refuse_repeats(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse an option that reads one file but names several, instead of silently using the last."""
        from groupgt.cli.output import FILE

        named = [text.partition("=")[0] if text.startswith("--") else text[:2] for text in args if text[:1] == "-"]
        # Most command lines are parsed only once.
        given = [] if len({*named}) == len(named) else self.make_parser(ctx).parse_args([*args])[2]
        for option in given:
            if (
                option.type is FILE
                and isinstance(option, click.Option)
                and not option.multiple
                and given.count(option) > 1
            ):
                what = f"expected one file, found {given.count(option)}; keep one, or join the files"
                raise click.UsageError(f"{option.opts[0]}: {what}", ctx)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the same help options for every context."""
        return ["-h", "--help"]

    def _examples(self) -> list[str]:
        return [f"{self.name} {example}" for example in EXAMPLES.get(self.name or "", ())]

    def _short_help(self, ctx: click.Context) -> str:
        """Return a short help text: what the command does, an example and common options."""
        formatter = ctx.make_formatter()
        self.format_usage(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text((self.help or "").partition("\n")[0])
        write_examples(formatter, self._examples()[:1])
        options = {param.opts[-1]: param for param in self.get_params(ctx)}
        records = [options[name].get_help_record(ctx) for name in USED_MOST if name in options][:MOST_SHOWN]
        with formatter.section("Common options"):
            formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text(f"All options: groupgt {self.name} --help")
        return formatter.getvalue().rstrip("\n")

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command after checking that its options fit together and that it can write its output files."""
        from groupgt.cli.needs import check_needs
        from groupgt.cli.output import check_outputs

        check_outputs(ctx)
        check_needs(ctx)
        return super().invoke(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, followed by examples."""
        super().format_help_text(ctx, formatter)
        write_examples(formatter, self._examples())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, followed by each option group."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        if len(options) <= UNGROUPED_OPTIONS:
            super().format_options(ctx, formatter)
            return
        group_of = {name: group for group, names in GROUPS.items() for name in names}
        groups = [group_of.get(option.opts[-1], "Options") for option in options]
        # One option needs no heading of its own.
        groups = ["Options" if groups.count(group) == 1 else group for group in groups]
        for group in ("Options", *GROUPS):
            of_group = [option for option, of in zip(options, groups) if of == group]
            shown = [record for option in of_group if (record := option.get_help_record(ctx)) is not None]
            if shown:
                with formatter.section(group):
                    formatter.write_dl(shown)


command = partial(click.command, cls=Command)
