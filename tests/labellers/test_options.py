"""Options of labellers, in Python, in the shell and in experiments: every fault is told at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.evaluation.sources import Sources, labeller_of
from groupgt.experiment.experiment import load
from groupgt.labellers.base import Labeller
from groupgt.options import Option, choices, options_of
from groupgt.plugins import find, ours
from tests.labellers import slow
from tests.labellers.test_against_loops import LARGE

ROOT = Path(__file__).parents[2]


def refused(use: str, given: dict[str, Any], *, texts: bool = False) -> str:
    with pytest.raises(groupgt.ConfigError) as caught:
        labeller_of({"use": use, "with": given}, Sources(), texts=texts)
    return str(caught.value)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("id", {"x": 1}, "id: x: unknown option 'x'; there are no options"),
    ("parents", {"pattern": "a#"}, "parents: pattern: expected a regular expression whose first group is the parent"),
    ("parents", {"pattern": "("}, "parents: pattern: expected a regular expression, found '('"),
    ("parents", {"pattern": "(.*)", "mapping": "a.csv"}, "parents: pattern: conflicts with mapping"),
    ("spans", {"min_overlap": 0}, "spans: min_overlap: expected a number above 0, at most 1, found 0"),
    ("spans", {"min_overlap": 1.5}, "found 1.5"),
    ("spans", {"min_overlap": "half"}, "spans: min_overlap: expected a number, found 'half'"),
    ("spans", {"min_overlap": True}, "expected a number, found True"),
    ("spans", {"min_overlap": float("nan")}, "expected a number, found nan"),
    ("spans", {"of": "alternatives"}, "spans: of: expected alternative, result or union, found 'alternatives' (did"),
    ("spans", {"unit": "words"}, "spans: unit: expected chars, pages or lines"),
    ("spans", {"joint": True, "of": "union"}, "spans: joint: results can cover an alternative together"),
    ("spans", {"joint": 1}, "spans: joint: expected true or false, found 1"),
    ("spans", {"chunk": "a.csv"}, "did you mean 'chunks'?"),
    ("spans", {"chunks": 5}, "spans: chunks: expected a path or a mapping, found 5"),
    ("text", {"method": "contain"}, "text: method: expected contained, partial_ratio or token_recall"),
    ("text", {"threshold": 0}, "text: threshold: expected a number above 0, at most 1"),
    ("embedding", {}, "embedding: documents: expected vectors (or a model), found neither"),
    ("embedding", {"model": "m", "threshold": -1}, "embedding: threshold: expected a cosine above 0"),
    ("code", {}, "code: target: expected module:function, found ''"),
    ("code", {"target": "module"}, "code: target: expected module:function, found 'module'"),
    ("code", {"target": "a:b", "batch_size": 0}, "code: batch_size: expected a whole number from 1 to 1,000,000"),
]


@pytest.mark.parametrize(("use", "given", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_in_python(use: str, given: dict[str, Any], words: str) -> None:
    assert words in refused(use, given)


def test_all_faults_are_told_at_once() -> None:
    told = refused("spans", {"min_overlap": 2, "of": "x", "joint": "yes", "colour": 3})
    assert [word in told for word in ("min_overlap", "of: ", "joint", "colour")] == [True] * 4


def test_the_shell_reads_numbers_and_truth_values() -> None:
    given = {"min_overlap": "0.25", "joint": "true", "chunks": ""}
    assert "0.25 of the alternative together" in str(labeller_of({"use": "spans", "with": given}, texts=True))
    assert "expected true or false, found 'yes'" in refused("spans", {"joint": "yes"}, texts=True)
    assert "expected a whole number, found '1.5'" in refused("code", {"target": "a:b", "batch_size": "1.5"}, texts=True)


@pytest.mark.parametrize("spec", [5, None, {}, {"use": 5}, {"use": "id", "options": {}}, ["id"]])
def test_what_names_no_labeller(spec: Any) -> None:
    with pytest.raises(groupgt.ConfigError, match="labeller: expected"):
        labeller_of(spec)
    with pytest.raises(groupgt.ConfigError, match=r"found 'span' \(did you mean 'spans'"):
        labeller_of("span")


def test_a_labeller_of_ones_own_is_taken_as_it_is() -> None:
    own = Labeller()
    assert labeller_of(own) is own


@pytest.mark.parametrize("name", ours("labeller"))
def test_every_labeller_says_what_its_options_are(name: str) -> None:
    assert len(find("labeller", name).options.__doc__ or "") > 20


def other_values(option: Option) -> list[Any]:
    """Values that an option may have besides its default; a threshold is exact to few digits."""
    if choices(option.hint):
        return [choice for choice in choices(option.hint) if choice != option.default]
    if isinstance(option.default, bool):
        return [not option.default]
    return ["x:(y)"] if isinstance(option.default, str) else [option.default / 2]


def with_options(name: str, **values: Any) -> Labeller:
    """A labeller with these options, which may clash."""
    plugin = find("labeller", name)
    made: Labeller = plugin.built(replace(plugin.options(), **values), MagicMock(**{"chunks.return_value": None}))
    return made


EVERY_OPTION = [(name, option) for name in ours("labeller") for option in options_of(find("labeller", name).options)]


@pytest.mark.parametrize(("name", "option"), EVERY_OPTION)
def test_no_two_labellers_that_differ_in_an_option_are_called_alike(name: str, option: str) -> None:
    """But for files, and for what decides no hit; some options count only beside a certain value of another one."""
    options = options_of(find("labeller", name).options)
    labeller: Any = find("labeller", name).build
    if options[option].is_path or option in labeller.decides_nothing:
        return
    beside = [{}] + [{other: value} for other in options if other != option for value in other_values(options[other])]
    changed = [(each, {**each, option: value}) for each in beside for value in other_values(options[option])]
    both = [(with_options(name, **before), with_options(name, **after)) for before, after in changed]
    assert any(str(before) != str(after) for before, after in both)
    if option not in labeller.described:
        twice = [str(after) for before, after in both if before.description() != after.description()]
        assert not twice, f"{option} is printed twice; it belongs in `described`: {twice[0]}"


# Options that say where parents, vectors and verdicts come from, which has tests of its own.
ORIGINS = {"column", "pattern", "model", "document_prefix", "alternative_prefix", "target", "version"}


DECIDES_HITS = [
    (name, option)
    for name, option in EVERY_OPTION
    if not (
        options_of(find("labeller", name).options)[option].is_path
        or option in find("labeller", name).build.decides_nothing | ORIGINS
    )
]


@pytest.mark.parametrize(("name", "option"), DECIDES_HITS)
def test_every_option_that_decides_hits_is_one_of_the_slow_loop(name: str, option: str) -> None:
    assert option in {field.name for field in fields(getattr(slow, name.capitalize()))}


def test_every_option_that_decides_hits_has_several_values_in_the_worlds() -> None:
    built = [labeller_of(make(random.Random(which)).labeller) for which, make in LARGE.items()]
    for name, option in DECIDES_HITS:
        tried = {getattr(each.options, option) for each in built if each.name == name}
        assert len(tried) > 1, f"no world in test_against_loops.py tries {option} of {name} besides {tried or 'none'}"


def test_an_option_that_no_description_words_is_shown_by_its_name() -> None:
    @dataclass(frozen=True)
    class Options:
        stemmer: str = "none"
        top_words: int = 5

    class Stems(Labeller):
        name = "stems"

        def __init__(self, options: Options) -> None:
            self.options = options

    assert [str(Stems(Options())), str(Stems(Options("snowball", 7)))] == [
        "stems",
        "stems (stemmer 'snowball', top words 7)",
    ]


def experiment(tmp_path: Path, labeller: str) -> Path:
    path = tmp_path / "experiment.yaml"
    folder = (ROOT / "examples" / "first").as_posix()
    path.write_text(
        f"version: 1\nname: x\ndatasets:\n  a: {{ground_truth: {folder}/truth.jsonl}}\n"
        f"  b: {{ground_truth: {folder}/truth.jsonl}}\n"
        f"systems:\n  s: {{use: results, with: {{path: {folder}/bm25.trec}}}}\n"
        f"evaluate:\n  metrics: recall\n  labeller: {labeller}\n",
        encoding="utf-8",
    )
    return path


def test_an_experiment_names_line_and_column(tmp_path: Path) -> None:
    path = experiment(tmp_path, "{use: spans, with: {min_overlap: 3, joit: true, chunks: 'chunks/{dataset}.csv'}}")
    with pytest.raises(groupgt.ConfigError) as caught:
        load(path)
    told = str(caught.value).splitlines()
    assert [line.split(": ")[0] for line in told] == [f"{path}:10:{column}" for column in (46, 49, 69, 69)]
    assert "evaluate.labeller.with.min_overlap: expected a number above 0, at most 1, found 3" in told[0]
    assert "evaluate.labeller.with.joit: unknown option 'joit'" in told[1]
    assert told[2].endswith("chunks/a.csv")
    assert told[3].endswith("chunks/b.csv")


def test_an_experiment_runs_no_code_that_was_not_allowed(tmp_path: Path) -> None:
    path = experiment(tmp_path, "{use: code, with: {target: 'mine:judge'}}")
    with pytest.raises(groupgt.ConfigError, match=r":10:19: evaluate\.labeller\.use: code runs your code"):
        load(path)


def test_the_shell_runs_no_code_that_was_not_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "first"
    words = ["evaluate", str(folder / "truth.jsonl"), str(folder / "bm25.trec"), "--labeller", "code"]
    with pytest.raises(SystemExit) as end:
        main([*words, "--with", "target=mine:judge"])
    assert end.value.code == 2
    assert "mine:judge is custom code; allow it with --allow-code" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["chunks", "=x", ""])
def test_an_option_without_a_value(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ROOT / "examples" / "first"
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(folder / "truth.jsonl"), str(folder / "bm25.trec"), "--with", given])
    assert end.value.code == 2
    assert "--with: expected OPTION=VALUE" in capsys.readouterr().err
