"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from groupgt.engines.choice import Engine, engine_of
from groupgt.errors import ConfigError, Faults
from groupgt.evaluation.request import Sources, labeller_of
from groupgt.formats.corpus import read_lengths
from groupgt.formats.parts import is_url
from groupgt.formats.tokenizers import FORMS, tokenizer_named
from groupgt.labellers.base import Labeller
from groupgt.labellers.registry import LABELLERS
from groupgt.metrics.base import CONVENTIONS
from groupgt.metrics.language import split_names
from groupgt.model.lengths import Lengths
from groupgt.model.validity import shown

CACHE = ".groupgt/cache"
DEFAULT_METRICS = ("precision", "recall", "f1", "mrr", "map", "ndcg")
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _File(click.Path):
    """A path; an empty text is none, though it would name the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).strip():
            self.fail(f"expected the path of a file, found the empty text {value!r}", param, ctx)
        if is_url(value):
            return value
        return super().convert(value, param, ctx)


FILE = _File(path_type=Path)
parts_option: Decorator = click.option(
    "--parts", "in_parts", is_flag=True, help="A folder or glob is one run in many files, whose queries may span files."
)
memory_option: Decorator = click.option(
    "--memory", metavar="SIZE", help="How much the process may hold, such as 2GB; files are then read as a stream."
)
truth_argument: Decorator = click.argument("truth", type=FILE)
run_argument: Decorator = click.argument("run", type=FILE)
metrics_option: Decorator = click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="METRIC",
    help="Metrics, such as recall@5 or ndcg,mrr; repeatable.",
)
k_option: Decorator = click.option(
    "-k", "ks", multiple=True, metavar="K", help="Cutoffs for metrics without one of their own, such as 1,5,10."
)
conventions_option: Decorator = click.option(
    "--convention",
    default="autorag",
    show_default=True,
    metavar="C[,C]",
    help=f"{', '.join(CONVENTIONS)}; several stand side by side.",
)
convention_option: Decorator = click.option(
    "--convention", type=click.Choice(CONVENTIONS), default="autorag", show_default=True
)
BY_HELP = "Slice by a column of TRUTH, by n_groups or n_alternatives; repeatable."
where_option: Decorator = click.option(
    "--where",
    "conditions",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Only queries whose column of TRUTH has this value, such as split=test; repeatable.",
)
policy_option: Decorator = click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FIELD=VALUE",
    help="What is done with doubtful data, such as missing=skip, or a preset: autorag, trec; repeatable.",
)
format_option: Decorator = click.option(
    "--format", "style", default="simple", show_default=True, help="Any tabulate format, csv, or json."
)
corpus_option: Decorator = click.option(
    "--corpus", type=FILE, help="The texts, for labellers and to show beside ids: JSONL, parquet or CSV."
)
lengths_option: Decorator = click.option(
    "--corpus",
    type=FILE,
    help="The texts, or their columns tokens and chars: for labellers, and for budgets such as recall@2000tokens.",
)
tokenizer_option: Decorator = click.option(
    "--tokenizer", metavar="NAME", help=f"What counts tokens: {', '.join(FORMS)}."
)
allow_code_option: Decorator = click.option(
    "--allow-code", is_flag=True, help="Let a tokenizer or a labeller of yours run."
)


def lengths_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how long results are."""
    decorated: Callable[..., Any] = lengths_option(tokenizer_option(allow_code_option(command)))
    return decorated


labeller_option: Decorator = click.option(
    "--labeller",
    default="id",
    show_default=True,
    metavar="NAME",
    help=f"What says which result hits which alternative: {', '.join(LABELLERS)} (groupgt labellers).",
)
with_option: Decorator = click.option(
    "--with",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the labeller, such as chunks=chunks.csv or min_overlap=0.5; repeatable.",
)


def labeller_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a labeller."""
    decorated: Callable[..., Any] = labeller_option(with_option(command))
    return decorated


def labeller_from(
    name: str,
    settings: tuple[str, ...],
    corpus: Path | None = None,
    *,
    allow_code: bool = False,
    option: str = "--with",
) -> Labeller:
    """The labeller that --labeller and --with name; its verdicts are kept where experiments keep theirs."""
    given: dict[str, str] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{option}: expected OPTION=VALUE, such as min_overlap=0.5, found {text!r}")
        if key.strip() in given:
            raise ConfigError(f"{option} {key.strip()}: stands twice; remove one")
        given[key.strip()] = value
    sources = Sources(corpus, allow_code=allow_code, cache=Path(CACHE))
    return labeller_of({"use": name, "with": given}, sources, texts=True)


truth_format_option: Decorator = click.option(
    "--truth-format", help="The format of TRUTH, where it is not to be detected; trec-subtopics, say."
)


def check_outputs(inputs: Sequence[str | os.PathLike[str]], outputs: Sequence[Path | None]) -> None:
    """Raises `ConfigError` for files that cannot be written, are read as well, or are named twice."""
    faults = Faults()
    taken = {Path(path).resolve(): f"{path}, which is read" for path in inputs if not is_url(path)}
    for path in outputs:
        if path is None:
            continue
        if not path.resolve().parent.is_dir() or path.is_dir():
            what = "a folder" if path.is_dir() else "no folder to write it in"
            faults.add(str(path), f"expected a file that can be written, found {what}")
        if path.resolve() in taken:
            faults.add(str(path), f"would overwrite {taken[path.resolve()]}; name another file")
        taken[path.resolve()] = f"{path}, which is written as well"
    faults.stop(ConfigError)


def engine_with(memory: str | None) -> Engine:
    """The engine, under a ceiling of memory where one is given."""
    return Engine() if memory is None else engine_of({"use": "streaming", "with": {"memory": memory}})


def split_metrics(given: tuple[str, ...]) -> list[str]:
    """The metrics of all -m options, or AutoRAG's six."""
    if not given:
        return list(DEFAULT_METRICS)
    names = [name for text in given for name in split_names(text)]
    if not names:
        raise ConfigError(f"-m: expected metrics, such as recall@5,ndcg, found {', '.join(map(repr, given))}")
    return names


def split_ks(given: tuple[str, ...]) -> list[int]:
    """The cutoffs of all -k options."""
    faults = Faults()
    ks = []
    for text in (part.strip() for each in given for part in each.split(",")):
        if text.isascii() and text.isdigit() and len(text) <= 16 and 0 < int(text) <= 10**15:
            ks.append(int(text))
        else:
            faults.add("-k", f"expected whole numbers above 0 and up to 10^15, such as 1,5,10, found {shown(text)}")
    faults.stop(ConfigError)
    return list(dict.fromkeys(ks))


def split_where(given: tuple[str, ...]) -> dict[str, list[str]]:
    """The conditions of all --where options: of one column any value, of several columns all."""
    found: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise ConfigError(f"--where: expected COLUMN=VALUE, such as split=test, found {text!r}")
        found.setdefault(column.strip(), []).append(value.strip())
    return found


def split_columns(given: tuple[str, ...]) -> list[str]:
    """The columns of all --by options."""
    return [column.strip() for each in given for column in each.split(",") if column.strip()]


def split_conventions(given: str) -> list[str]:
    """The conventions of --convention; which there are is said when metrics are read."""
    return list(dict.fromkeys(part.strip() for part in given.split(",") if part.strip())) or ["autorag"]


def lengths_of(corpus: Path | None, tokenizer: str | None, *, allow_code: bool = False) -> Lengths:
    """How long results are, by what the options name."""
    count = None if tokenizer is None else tokenizer_named(tokenizer, allow_code=allow_code)
    return Lengths(count=count) if corpus is None else read_lengths(corpus, count)


def split_policy(given: tuple[str, ...]) -> dict[str, str]:
    """The fields of all --policy options."""
    fields = {}
    for part in (part.strip() for each in given for part in each.split(",")):
        name, equals, value = part.partition("=")
        fields[name.strip() if equals else "preset"] = value.strip() if equals else part
    return fields
