"""A metric of one's own: ten lines, and it works wherever a metric's name is written."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Ge, Gt, Le, Lt

import groupgt
from groupgt import plugins
from groupgt.cli.main import main
from groupgt.metrics.base import Parameter
from groupgt.metrics.description import as_dict, details
from groupgt.metrics.views import covered_groups, relevant_results
from groupgt.metrics.worksheet import Sheet

TRUTH = {"q1": [["a"], ["b"]], "q2": [["c"]], "q3": []}
RUN = {"q1": ["a", "x", "b", "y"], "q2": ["x", "c"]}
FORMULA = "(Σ over covered groups of 2^((1 − rank) ÷ h)) ÷ m"


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is registered here is forgotten afterwards."""
    monkeypatch.setattr(plugins, "REGISTERED", {})


def half_life(hits: Any, h: Annotated[float, Gt(0), Le(100)] = 5.0) -> Any:
    """Gain of the covered groups, halved every h results.

    More is said here.
    """
    rows = covered_groups(hits)
    worth = np.bincount(rows.query, 2.0 ** ((1 - rows.rank) / h), minlength=hits.size)
    return worth / np.maximum(hits.judgments.groups, 1)


def named(name: str = "half_life", function: Callable[..., Any] = half_life, **facts: Any) -> Any:
    return groupgt.metric(name, **{"formula": FORMULA, **facts})(function)


def test_it_works_in_evaluate() -> None:
    metric = named()
    assert repr(metric) == "Metric('half_life')"
    asked = [metric, "half_life(h=2)", "half_life@2", "half_life(h=1)@3", "recall@2"]
    found = groupgt.evaluate(TRUTH, RUN, asked)
    values = {name: column.tolist() for name, column in found.values.items()}
    # q1: a at rank 1, b at rank 3; q2: c at rank 2; q3 is undefined
    assert values["half_life"][:2] == pytest.approx([(1 + 2 ** (-2 / 5)) / 2, 2 ** (-1 / 5)])
    assert values["half_life(h=2)"][:2] == pytest.approx([(1 + 0.5) / 2, 2**-0.5])
    assert values["half_life@2"][:2] == pytest.approx([0.5, 2 ** (-1 / 5)])
    assert values["half_life(h=1)@3"][:2] == [(1 + 0.25) / 2, 0.5]
    assert all(np.isnan(column[2]) for column in values.values())
    assert groupgt.evaluate(TRUTH, RUN, ["half_life"], k=[1, 2]).means.keys() == {"half_life@1", "half_life@2"}


def test_it_works_in_compare_and_by_slices() -> None:
    named()
    compared = groupgt.compare(TRUTH, {"one": RUN, "two": {"q1": ["b"], "q2": ["c"]}}, ["half_life"], baseline="one")
    assert compared["two"]["half_life"].delta == pytest.approx((0.5 - (1 + 2 ** (-2 / 5)) / 2 + 1 - 2 ** (-1 / 5)) / 2)
    assert groupgt.evaluate(TRUTH, RUN, ["half_life"], by="n_groups").slices


def test_it_works_under_a_budget_and_on_frames() -> None:
    import polars as pl

    named()
    lengths = groupgt.Lengths({"tokens": dict.fromkeys("abcxy", 10)})
    budget = groupgt.evaluate(TRUTH, RUN, ["half_life@20tokens"], lengths=lengths)
    assert budget.values["half_life@20tokens"][0] == 0.5
    rows = [(qid, name, -float(rank)) for qid, names in RUN.items() for rank, name in enumerate(names)]
    frame = pl.DataFrame(rows, schema=["qid", "doc_id", "score"], orient="row")
    lists = groupgt.evaluate(TRUTH, RUN, ["half_life@2"])
    assert groupgt.evaluate(TRUTH, frame, ["half_life@2"]).values["half_life@2"].tobytes() == (
        lists.values["half_life@2"].tobytes()
    )


def test_explain_shows_the_formula_and_the_value() -> None:
    metric = named()
    text = groupgt.evaluate(TRUTH, RUN, [metric]).explain("q2")
    assert text.endswith(f"half_life = 0.8706\n  {FORMULA}")
    assert groupgt.evaluate(TRUTH, RUN, [metric]).explain("q3").endswith("\n  = undefined")

    def worked(sheet: Sheet, h: float = 5.0) -> str:
        terms = " + ".join(f"2**((1 - {group.first})/{h:g})" for group in sheet.groups if group.first)
        return f"({terms or 0}) / {len(sheet.groups)}"

    metric = named(worked=worked, replace=True)
    text = groupgt.evaluate(TRUTH, RUN, ["half_life(h=2)"]).explain("q1")
    assert text.endswith("  = (2**((1 - 1)/2) + 2**((1 - 3)/2)) / 2")


def test_each_cutoff_has_hits_of_its_own_made_once() -> None:
    """Three results of q1 fit into 30 tokens, one into 10. Two metrics see the same copy, but under a budget."""
    seen: list[Any] = []

    def first(hits: Any) -> Any:
        seen.append(hits)
        return hits.length

    named("first", first, bounded=False)
    named("second", first, bounded=False)
    lengths = groupgt.Lengths({"tokens": dict.fromkeys("abcxy", 10)})
    for cutoffs in (["@30tokens", "", "@10tokens", "@2"], ["", "@10tokens", "@30tokens", "@2"]):
        seen.clear()
        asked = [f"{name}{cutoff}" for cutoff in cutoffs for name in ("first", "second")]
        found = groupgt.evaluate(TRUTH, RUN, asked, lengths=lengths)
        values = {cutoff: found.values[f"second{cutoff}"][0] for cutoff in cutoffs}
        assert values == {"": 4, "@30tokens": 3, "@10tokens": 1, "@2": 2}
        once = [one is other for one, other in zip(seen[::2], seen[1::2])]
        assert once == ["tokens" not in cutoff for cutoff in cutoffs]


def test_a_function_may_ask_for_the_cut() -> None:
    seen = []

    def at_k(hits: Any, cut: Any) -> Any:
        seen.append((cut.k.tolist(), cut.top.tolist(), None if cut.ideal is None else cut.ideal.tolist()))
        return np.bincount(relevant_results(hits).query, minlength=hits.size) / np.maximum(cut.k, 1)

    named("own_precision", at_k)
    found = groupgt.evaluate(TRUTH, RUN, ["own_precision@3", "precision.trec@3", "own_precision"])
    assert found.values["own_precision@3"].tobytes() == found.values["precision.trec@3"].tobytes()
    assert seen[0] == ([3, 3, 3], [3, 2, 0], [3, 3, 3])
    assert seen[1] == ([4, 2, 0], [4, 2, 0], None)


def test_what_it_is_given_cannot_be_changed() -> None:
    def spoiling(hits: Any) -> Any:
        for column in (
            hits.rank,
            hits.query,
            hits.length,
            hits.judgments.group_weight,
            hits.judgments.alternative_group,
        ):
            assert not column.flags.writeable
        rows = covered_groups(hits)
        rows.rank[:] = 1
        hits.judgments.groups[:] = 1
        return np.ones(hits.size)

    named("spoiling", spoiling)
    alone = groupgt.evaluate(TRUTH, RUN, ["mrr", "recall"])
    truth = groupgt.GroundTruth.of(TRUTH)
    beside = groupgt.evaluate(truth, RUN, ["spoiling", "mrr", "recall"])
    again = groupgt.evaluate(truth, RUN, ["mrr", "recall"])
    assert alone.means["mrr"] == beside.means["mrr"] == again.means["mrr"]
    assert alone.means["recall"] == beside.means["recall"] == again.means["recall"]


# ---- parameters -------------------------------------------------------------------------------------------------


def test_parameters_are_those_of_the_function() -> None:
    def weighted(hits: Any, h: Annotated[float, Gt(0)] = 5.0, form: Literal["linear", "exp"] = "linear") -> Any:
        return np.full(hits.size, 1.0 if form == "exp" else 0.0)

    named("weighted", weighted)
    assert str(groupgt.parse_metric("weighted(form=exp, h=5)@2")) == "weighted(form=exp)@2"
    for text, words in (
        ("weighted(h=0)", "h: expected a number above 0, found 0"),
        ("weighted(form=log)", "form: expected linear or exp, found 'log'"),
        ("weighted(g=1)", "has no parameter 'g': its parameters are h, form"),
    ):
        with pytest.raises(groupgt.MetricError, match=words):
            groupgt.parse_metric(text)
    assert groupgt.evaluate(TRUTH, RUN, ["weighted(form=exp)"]).means["weighted(form=exp)"] == 1


def test_parameters_behind_others_are_read_as_well() -> None:
    def several(hits: Any, cut: Any, form: Literal["one", "two"] = "one", h: float = 5.0) -> Any:
        return np.full(hits.size, h / 10)

    assert [each.name for each in named("several", several).formula.parameters] == ["form", "h"]
    assert groupgt.evaluate(TRUTH, RUN, ["several(h=3)"])["several(h=3)"] == 0.3


@pytest.mark.parametrize(
    ("hint", "within", "outside"),
    [
        (Annotated[float, Ge(1), Le(3)], ("1", "3"), ("0.99", "3.01")),
        (Annotated[float, Gt(1), Lt(3)], ("1.01", "2.99"), ("1", "3")),
    ],
)
def test_bounds_of_a_parameter(hint: Any, within: tuple[str, ...], outside: tuple[str, ...]) -> None:
    def bounded(hits: Any, h: Any = 2.0) -> Any:
        return np.ones(hits.size)

    bounded.__annotations__["h"] = hint
    named("in_bounds", bounded)
    assert [str(groupgt.parse_metric(f"in_bounds(h={value})")) for value in within]
    for value in outside:
        with pytest.raises(groupgt.MetricError, match="h: expected a number"):
            groupgt.parse_metric(f"in_bounds(h={value})")


def test_parameters_of_ones_own() -> None:
    odd = Parameter("h", 3.0, "an odd number", lambda value: value % 2 == 1)
    named(parameters=[odd])
    with pytest.raises(groupgt.MetricError, match="h: expected an odd number, found 4"):
        groupgt.parse_metric("half_life(h=4)")


def test_numbers_without_a_range_are_finite_and_keep_their_text() -> None:
    named(parameters=[Parameter("h", 3.0, "any number")])
    with pytest.raises(groupgt.MetricError, match="h: expected any number, found 1e999"):
        groupgt.parse_metric("half_life(h=1e999)")
    for number, text in (("1e14", "100000000000000"), ("1e15", "1000000000000000.0"), ("-1e20", "-1e+20")):
        metric = groupgt.parse_metric(f"half_life(h={number})")
        assert str(metric) == f"half_life(h={text})"
        assert groupgt.parse_metric(str(metric)) == metric


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda hits, h: None, "the parameter h needs a name and a default"),
        (lambda hits, *more: None, "the parameter more needs a name and a default"),
        (lambda hits, form="linear": None, r"form: expected a numeric default or a Literal\[…\] annotation"),
        (lambda hits, flag=True: None, "flag: expected a numeric default"),
    ],
)
def test_parameters_that_are_none(function: Any, words: str) -> None:
    with pytest.raises(groupgt.MetricError, match=words):
        named("mine", function)


def test_a_default_out_of_range() -> None:
    def low(hits: Any, h: Annotated[float, Gt(0)] = 0.0) -> Any:
        return np.zeros(hits.size)

    with pytest.raises(groupgt.MetricError, match="h: expected a number above 0 as its default, found"):
        named("low", low)


# ---- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("recall", "metric 'recall': this name is built in and cannot be replaced; choose another name"),
        ("rr", "this is an alias of a built-in metric"),
        ("recall_5", "this is an alias of a built-in metric"),
        ("retrieval_mine", "this is an alias of a built-in metric"),
        ("qid", "tables and gates use this name for something else"),
        ("latency_p99", "tables and gates use this name for something else"),
        ("Mine", "expected a name that begins with a letter"),
        ("mine@5", "expected a name that begins with a letter"),
        ("", "expected a name that begins with a letter"),
        (5, "metric 5: expected a name"),
    ],
)
def test_names_that_cannot_be_had(name: Any, words: str) -> None:
    with pytest.raises(groupgt.MetricError, match=words):
        named(name)
    assert not plugins.REGISTERED


def test_the_same_function_again_is_fine_and_another_is_not() -> None:
    named()
    named()
    again: dict[str, Any] = {}
    source = "def mine(hits, h=1.0):\n    return hits.length * h\n"
    for _ in range(2):  # as a cell of a notebook that is run again
        exec(source, again)
        named("mine", again["mine"])
    with pytest.raises(groupgt.MetricError, match="this name is taken; pass replace=True, or choose another name"):
        named("half_life", lambda hits: hits.length)
    with pytest.raises(groupgt.MetricError, match="this name is taken"):
        named(formula="something else")
    named("half_life", lambda hits: hits.length / 4, replace=True)
    assert groupgt.evaluate({"q": [["a"]]}, {"q": ["a"]}, ["half_life"])["half_life"] == 0.25


def test_functions_of_one_code_that_close_over_other_values_are_others() -> None:
    def made(value: float) -> Any:
        return lambda hits: np.full(hits.size, value)

    named("mine", made(0.5))
    with pytest.raises(groupgt.MetricError, match="this name is taken"):
        named("mine", made(0.25))


def test_a_name_that_nobody_registered() -> None:
    metric = named()
    carried = pickle.dumps(metric)
    plugins.REGISTERED.clear()
    with pytest.raises(
        groupgt.MetricError, match=r"there is no metric named 'half_lif'.*did you mean|groupgt list metrics"
    ):
        groupgt.parse_metric("half_lif")
    with pytest.raises(groupgt.MetricError, match="not registered in this process; import the module"):
        groupgt.evaluate(TRUTH, RUN, [pickle.loads(carried)])


def test_near_names_know_it() -> None:
    named()
    with pytest.raises(groupgt.MetricError, match=r"did you mean 'half_life'\?"):
        groupgt.parse_metric("half_live")


# ---- what is wrong with what it returns -------------------------------------------------------------------------


def fails(hits: Any) -> Any:
    raise KeyError("nothing\nthere")


def leaves(hits: Any) -> Any:
    sys.exit(3)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda hits: 1.0, r"expected a number for each of 3 queries, found an array of shape \(\)"),
        (lambda hits: np.ones(2), r"found an array of shape \(2,\)"),
        (lambda hits: np.ones((3, 1)), r"found an array of shape \(3, 1\)"),
        (lambda hits: ["a", "b", "c"], "ValueError: could not convert string to float"),
        (lambda hits: None, r"found an array of shape \(\)"),
        (lambda hits: np.array([1, np.inf, 0]), "query 'q2': expected a finite number, or NaN if undefined"),
        (fails, r"KeyError: 'nothing\\nthere' \(.*test_own.py:\d+ in \w+\)"),
        (leaves, r"SystemExit: 3 \(.*test_own.py:\d+ in \w+\)"),
    ],
)
def test_values_that_are_none(function: Any, words: str) -> None:
    named("mine", function)
    with pytest.raises(groupgt.MetricError, match=f"metric 'mine': .*{words}"):
        groupgt.evaluate(TRUTH, RUN, ["mine"])


def test_an_error_of_ours_is_raised_as_it_is() -> None:
    def other(hits: Any) -> Any:
        return groupgt.parse_metric("recal").values(hits)

    named("mine", other)
    with pytest.raises(groupgt.MetricError, match="did you mean 'recall'") as caught:
        groupgt.evaluate(TRUTH, RUN, ["mine"])
    assert "metric 'mine'" not in str(caught.value)


def test_what_it_prints_is_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    def chatty(hits: Any) -> Any:
        print("here")
        return np.zeros(hits.size)

    named("chatty", chatty)
    groupgt.evaluate(TRUTH, RUN, ["chatty"])
    assert capsys.readouterr() == ("", "here\n")


def test_nan_is_no_value() -> None:
    named("mine", lambda hits: np.where(hits.length > 2, 1.0, np.nan))
    found = groupgt.evaluate(TRUTH, RUN, ["mine"])
    assert (found["mine"], found.per_query["mine"].to_list()) == (1.0, [1.0, None, None])


def test_lower_may_be_better() -> None:
    metric = named("reading", lambda hits: hits.length / 10, higher_is_better=False, takes_cutoff=False)
    assert not metric.higher_is_better
    with pytest.raises(groupgt.MetricError, match="reading uses the whole ranking and takes no cutoff"):
        groupgt.parse_metric("reading@5")
    # a query without results undefined for an empty ranking
    assert np.isnan(groupgt.evaluate({"q": [["a"]]}, {}, [metric]).values["reading"][0])


# ---- where it is listed -----------------------------------------------------------------------------------------


def test_the_catalogue_describes_it() -> None:
    metric = named(source="a paper")
    assert groupgt.list_metrics()[-1] is metric.definition
    shown = details(metric.definition)
    assert shown.startswith("half_life: Gain of the covered groups, halved every h results.\n")
    assert FORMULA in shown
    assert "h: a number above 0, at most 100; default 5.0" in shown
    assert as_dict(metric.definition)["formulas"][0]["source"] == "a paper"


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution on the path that brings metrics, as pip would install it."""
    (tmp_path / "brought_metrics.py").write_text(
        "import groupgt\n"
        "print('imported')\n"
        "@groupgt.metric('brought', formula='length ÷ 10')\n"
        "def brought(hits):\n    'How much there is to read.'\n    return hits.length / 10\n"
        "silent = 5\n"
    )
    info = tmp_path / "brought-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[groupgt.metrics]\nbrought = brought_metrics:brought\nsilent = brought_metrics:silent\n"
        "broken = no_such_module:x\nrecall = brought_metrics:brought\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("brought_metrics", None)


def test_an_installed_metric_works_in_the_shell(brought: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (brought / "truth.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"]]}\n')
    (brought / "run.trec").write_text("q Q0 a 1 2 t\nq Q0 b 2 1 t\n")
    files = [str(brought / "truth.jsonl"), str(brought / "run.trec")]
    main(["evaluate", *files, "-m", "brought,brought@1,recall", "--format", "json"])
    out, err = capsys.readouterr()
    means = {name: row["mean"] for name, row in json.loads(out)["runs"][0]["metrics"].items()}
    assert means == {"brought": 0.2, "brought@1": 0.1, "recall": 1.0}
    assert "imported" in err
    main(["explain", *files, "--query", "q", "-m", "brought"])
    assert capsys.readouterr().out.endswith("brought = 0.2000\n  length ÷ 10\n")


@pytest.mark.usefixtures("brought")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("silent", r"the plug-in brought_metrics:silent: expected groupgt.metric\('silent', …\), found 5"),
        ("broken", "the plug-in no_such_module:x cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_installed_metrics_at_fault(name: str, words: str) -> None:
    with pytest.raises(groupgt.MetricError, match=words):
        groupgt.parse_metric(name)
