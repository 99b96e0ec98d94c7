"""The options that public functions share: shown by each of them, and refused where they are not its own."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.evaluation.options import (
    DEFAULTS,
    EvaluateOptions,
    LabelOptions,
    MetricOptions,
    OneRunOptions,
    RequestOptions,
    TruthOptions,
)
from groupgt.evaluation.request import Request
from groupgt.options import options_of
from tests.snapshots import Snapshot


def written(options: Any) -> str:
    """The options of a class with their defaults."""
    return ", ".join(f"{name}={option.default!r}" for name, option in options_of(options).items())


TRUTH, LABELLED, ONE_RUN, REQUEST = map(written, (TruthOptions, LabelOptions, OneRunOptions, RequestOptions))
SIGNATURES = {
    "evaluate": f"truth, run, metrics, *, {written(EvaluateOptions)}",
    "evaluate_runs": f"truth, runs, metrics, *, convention='auto', {written(MetricOptions)}",
    "compare": "truth, runs, metrics, *, baseline=None, primary=None, test='randomization', correction=None, "
    f"alpha=0.05, confidence=0.95, resamples=10000, seed=0, pairs=False, these_queries=False, annotators=(), {REQUEST}",
    "power": "truth, runs, metrics, *, baseline=None, primary=None, difference=None, power=0.8, test='randomization', "
    f"correction=None, alpha=0.05, {REQUEST}",
    "misses": f"truth, run, k=10, worst=20, *, {ONE_RUN}",
    "depth": f"truth, run, share=0.9, *, unit='results', by=(), confidence=0.95, lengths=None, {ONE_RUN}",
    "stages": f"truth, runs, *, by=(), {LABELLED}",
    "thresholds": f"truth, run, share=0.9, *, {ONE_RUN}",
    "check": f"truth, runs=None, *, near_duplicates=False, threshold=0.9, {LABELLED}",
    "agree": f"truth, run=None, *, other_truth=None, other_labeller=None, parts=False, {LABELLED}",
    "rechunk": "truth, old=None, new=None, *, method=None, min_overlap=0.5, threshold=0.9, unit='chars', "
    f"drop_lost=False, {TRUTH}",
}


def shown(function: Any) -> str:
    """The signature without its annotations."""
    signature = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return str(inspect.Signature(bare))


@pytest.mark.parametrize("name", SIGNATURES)
def test_each_option_is_in_the_signature_in_its_place(name: str) -> None:
    function = getattr(groupgt, name)
    assert shown(function) == f"({SIGNATURES[name]})"
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^    {parameter}: \S", function.__doc__, re.MULTILINE), parameter


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_keyword_that_is_none_is_named(name: str, snapshot: Snapshot) -> None:
    function = getattr(groupgt, name)
    values = [{}] * sum(each.default is each.empty for each in inspect.signature(function).parameters.values())
    with snapshot.raises(TypeError):
        function(*values, polcy="trec")


def test_an_option_of_another_function_is_refused(snapshot: Snapshot) -> None:
    with snapshot.raises(TypeError):
        groupgt.check({"q": [["a"]]}, by="n_groups")
    with snapshot.raises(TypeError):
        groupgt.compare({}, {}, [], parts=True)
    with pytest.raises(TypeError, match=r"evaluate\(\) missing 1 required positional argument: 'metrics'"):
        groupgt.evaluate({}, {})


def test_every_option_has_a_default_and_a_text() -> None:
    for name, option in options_of(EvaluateOptions).items():
        assert not option.needed, name
        assert option.description, name


def test_the_defaults_are_what_is_read_if_no_option_is_given() -> None:
    given, usual = Request.of("mrr", **DEFAULTS), Request.of("mrr")
    for field in fields(Request):
        if field.name not in ("sources", "labeller"):
            assert getattr(given, field.name) == getattr(usual, field.name), field.name
    assert str(given.labeller) == str(usual.labeller) == "id"


def test_a_text_of_a_function_goes_before_the_shared_one() -> None:
    assert "passages that are nearly identical" in (groupgt.check.__doc__ or "")
    assert "in which to look for ground truth ids" in (groupgt.check.__doc__ or "")


def test_it_takes_docstrings_that_were_left_out() -> None:
    code = "import groupgt; groupgt.compare; groupgt.misses; groupgt.rechunk; print(groupgt.depth.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


@pytest.mark.slow
def test_type_checkers_know_each_option(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "user.py"
    file.write_text(
        "import groupgt\n"
        "truth, run = {'q': [['a']]}, {'q': ['a']}\n"
        "mean: float = groupgt.evaluate(truth, run, ['mrr'], convention='trec', k=5, name='x').means['mrr']\n"
        "delta: float = groupgt.compare(truth, {'a': run, 'b': run}, ['mrr'], policy='trec')['b']['mrr'].mean\n"
        "groupgt.evaluate(truth, run, ['mrr'], convention='tec')\n"
        "groupgt.evaluate(truth, run, ['mrr'], polcy='trec')\n"
        "groupgt.compare(truth, {}, ['mrr'], k='5')\n"
        "groupgt.check(truth, by='n_groups')\n"
        "groupgt.depth(truth, run, unit='words')\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(file)]
    environment = {**os.environ, "MYPYPATH": str(Path(groupgt.__file__).parents[1])}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    wrong = [
        line.split(":")[1] for line in done.stdout.splitlines() if line.startswith("user.py") and ": error: " in line
    ]
    assert wrong == ["5", "6", "7", "8", "9"], done.stdout
    for text in ('"convention"', 'argument "polcy"', '"k"', 'argument "by"', '"unit"'):
        assert text in done.stdout


@pytest.mark.parametrize(
    "options",
    [
        {"truth_format": "trec"},
        {"truth_columns": {"doc_id": "x"}},
        {"run_format": "trec"},
        {"run_columns": {"doc_id": "x"}},
        {"tool_spans": {"search": "id"}},
        {"parts": True},
        {"scores": {"other": "ascending"}, "name": "one"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_option_that_applies_to_no_value_is_refused(options: dict[str, Any]) -> None:
    for function, others in ((groupgt.evaluate, {"metrics": ["mrr"]}), (groupgt.misses, {})):
        with pytest.raises(groupgt.ConfigError, match="columns" if "columns" in str(options) else next(iter(options))):
            function({"q": [["a"]]}, {"q": ["a"]}, **others, **options)


def test_one_file_is_no_parts_and_no_audit_is_no_sample(tmp_path: Path) -> None:
    path = tmp_path / "a.trec"
    path.write_text("q Q0 a 1 1 x\n")
    with pytest.raises(groupgt.DataError, match="found one file"):
        groupgt.evaluate({"q": [["a"]]}, path, ["mrr"], parts=True)
    assert groupgt.evaluate({"q": [["a"]]}, tmp_path, ["mrr"], parts=True)["mrr"] == 1
    with pytest.raises(groupgt.ConfigError, match="assume_random"):
        groupgt.evaluate({"q": [["a"]]}, path, ["mrr"], assume_random=True)
    # An option of files applies if any run is a file.
    runs = {"file": path, "value": {"q": ["a"]}}
    assert groupgt.evaluate_runs({"q": [["a"]]}, runs, ["mrr"], run_format="trec")["file"]["mrr"] == 1
