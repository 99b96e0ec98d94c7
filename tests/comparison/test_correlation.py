"""Rank correlations: against loops over all orders of tied systems, SciPy, and values by hand."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations, product
from pathlib import Path

import numpy as np
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.comparison.correlation import tau_ap, tau_b

pytestmark = pytest.mark.slow


def orders(values: Sequence[float]) -> list[list[int]]:
    """Every order of the systems, best first, that breaks ties in some way."""
    every = permutations(range(len(values)))
    return [list(order) for order in every if all(values[a] >= values[b] for a, b in pairwise(order))]


def of_orders(reference: Sequence[int], order: Sequence[int]) -> Fraction:
    """tau_AP of two orders without ties, by its definition."""
    place = {system: at for at, system in enumerate(reference)}
    terms = [
        Fraction(sum(place[above] < place[system] for above in order[:rank]), rank)
        for rank, system in enumerate(order)
        if rank
    ]
    return 2 * sum(terms) / (len(order) - 1) - 1


@pytest.mark.parametrize("seed", range(12))
def test_tau_ap_is_the_mean_over_all_orders_of_ties(seed: int) -> None:
    rng = random.Random(seed)
    reference, values = ([float(rng.randint(0, 3)) for _ in range(5)] for _ in range(2))
    every = [of_orders(one, other) for one, other in product(orders(reference), orders(values))]
    assert tau_ap(np.array(reference), np.array(values)) == pytest.approx(float(sum(every) / len(every)), abs=1e-12)


def test_by_hand() -> None:
    # Reference a, b, c, d. At b: a above, right; at d: a and b right; at c: a and b right, d wrong: 1/1 + 2/2 + 2/3.
    assert tau_ap(np.array([4.0, 3, 2, 1]), np.array([4.0, 3, 1, 2])) == pytest.approx(2 / 3 * (1 + 1 + 2 / 3) - 1)
    # An exchange at the top costs more: at a: b wrong; at c and d all right: 0 + 1 + 1.
    assert tau_ap(np.array([4.0, 3, 2, 1]), np.array([3.0, 4, 2, 1])) == pytest.approx(2 / 3 * 2 - 1)
    # 3 pairs agree, 1 disagrees, one pair is tied on each side, of 6: 2 ÷ √(5·5).
    assert tau_b(np.array([3.0, 3, 2, 1]), np.array([3.0, 2, 1, 1])) == pytest.approx(4 / 5)
    assert np.isnan(tau_b(np.ones(5), np.arange(5.0)))


def test_tau_b_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    rng = np.random.default_rng(5)
    for _ in range(200):
        one, two = rng.integers(0, 6, (2, 12)).astype(float)
        assert tau_b(one, two) == pytest.approx(stats.kendalltau(one, two).statistic, abs=1e-12)


def data(systems: int = 6) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, list[str]]]]:
    """Thirty queries with two relevant documents; system n has them from rank n + 1 on, now and then."""
    rng = random.Random(2)
    truth = {f"q{number}": {"a": 1, "b": 1} for number in range(30)}
    runs = {
        f"s{number}": {qid: [*"xyzuv"[: rng.randint(0, number)], "a", "b"] for qid in truth}
        for number in range(systems)
    }
    return truth, runs


def test_a_side_with_itself() -> None:
    truth, runs = data()
    result = groupgt.correlate(truth, truth, runs, "mrr")
    assert (result.tau, result.tau_ap, result.tau_ap_reversed, result.swaps) == (1, 1, 1, ())
    assert result.shared == 30
    assert result.ranges["tau"] == (1, 1)


def test_lower_is_better_turns_an_order() -> None:
    truth, runs = data()
    grouped = {qid: [["a", "b"]] for qid in truth}
    # `redundancy` is b's share of the results, best for long lists; precision is worst for them.
    result = groupgt.correlate(grouped, runs=runs, metrics=["redundancy", "precision"])
    assert result.tau == -1
    assert len(result.swaps) == result.pairs == 15


def test_swaps_have_the_tests_of_both_sides() -> None:
    truth, runs = data()
    turned = {qid: {"x": 1, "b": 0} for qid in truth}
    runs["s0"]["q0"] = ["a", "b", "x"]
    result = groupgt.correlate(truth, turned, runs, "mrr", resamples=500)
    first, second = (groupgt.compare(each, runs, ["mrr"], pairs=True, resamples=500) for each in (truth, turned))
    assert result.swaps
    for swap in result.swaps:
        for table, contrast in ((first, swap.first), (second, swap.second)):
            pair = next(each for each in table.pairs if {each.first, each.second} == {swap.better, swap.worse})
            sign = 1 if pair.first == swap.better else -1
            assert contrast.delta == pytest.approx(sign * pair.against.delta)
            assert contrast.p_value == pair.against.p_value
            assert contrast.significant == pair.against.significant
        assert swap.first.delta > 0 > swap.second.delta


def test_queries_of_one_side_are_left_out() -> None:
    truth, runs = data()
    fewer = {qid: judged for qid, judged in truth.items() if qid != "q3"}
    result = groupgt.correlate(truth, fewer, runs, "mrr", policy={"extra": "ignore"})
    assert (result.shared, result.left_out) == (29, (1, 0))
    without = groupgt.correlate(fewer, fewer, runs, "mrr")
    assert result.means[0].tolist() == without.means[0].tolist()


def test_fewer_than_five_systems_are_refused() -> None:
    truth, runs = data(4)
    with pytest.raises(groupgt.GroupgtError, match="expected at least"):
        groupgt.correlate(truth, runs=runs, metrics=["mrr", "map"])


def test_numbers_of_metrics() -> None:
    truth, runs = data()
    with pytest.raises(groupgt.ConfigError, match="expected two metrics of one ground truth, found 1"):
        groupgt.correlate(truth, runs=runs, metrics="mrr")
    with pytest.raises(groupgt.ConfigError, match="expected one metric for both ground truths, found 2"):
        groupgt.correlate(truth, truth, runs, ["mrr", "map"])


def test_comparisons_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth, runs = data()
    direct = groupgt.correlate(truth, runs=runs, metrics=["mrr", "map"])
    table = groupgt.compare(truth, runs, ["mrr", "map"], resamples=10)
    assert groupgt.correlate(table, metrics=["mrr", "map"]).tau_ap == direct.tau_ap
    rows = [{"qid": qid, "retrieval_gt": [[name] for name in judged]} for qid, judged in truth.items()]
    (tmp_path / "qa.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, run in runs.items():
        lines = [json.dumps({"qid": qid, "retrieved_ids": ids}) + "\n" for qid, ids in run.items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(lines))
    systems = ", ".join(f"{name}: {{use: results, with: {{path: {name}.jsonl}}}}" for name in runs)
    (tmp_path / "e.yaml").write_text(
        f"version: 1\nname: e\nconvention: trec\ndatasets: {{d: {{ground_truth: qa.jsonl}}}}\nsystems: {{{systems}}}\n"
        f"evaluate: {{metrics: [mrr, map]}}\noutput: {{folder: {tmp_path / 'results'}, formats: [csv]}}\n"
    )
    folder = groupgt.run_experiment(tmp_path / "e.yaml").folder
    assert folder is not None
    stored = groupgt.correlate(folder, metrics=["mrr", "map"])
    assert (stored.tau, stored.tau_ap) == (direct.tau, direct.tau_ap)
    assert groupgt.correlate(folder, folder).tau == 1
    with pytest.raises(groupgt.ConfigError, match="metric 'ndcg': not among the stored metrics"):
        groupgt.correlate(folder, folder, metrics="ndcg")
    capsys.readouterr()
    assert main(["correlate", str(folder), "-m", "mrr,map", "--format", "json"]) is None
    assert json.loads(capsys.readouterr().out)["tau_ap"] == direct.tau_ap
    # The same is drawn, from the file that names the newest run too.
    drawn = ["plot", "correlation", str(folder.parent / "latest"), "-m", "mrr,map", "-o", str(tmp_path / "c.svg")]
    assert main(drawn) is None
    assert capsys.readouterr().out == f"{stored.plot().text}\n"
    assert "<svg" in (tmp_path / "c.svg").read_text()
    for option, value in (("--test", "t"), ("--baseline", "s1"), ("--system", "s1")):
        with pytest.raises(SystemExit, match="2"):
            main([*drawn, option, value])
        assert capsys.readouterr().err.startswith(f"groupgt: {option}: the correlation figure shows all systems")
    # Runs are missed before anything is read, and what a folder would leave without effect is refused.
    for given in (["-m", "mrr,map"], [str(tmp_path / "qa.jsonl"), "-m", "mrr"]):
        with pytest.raises(SystemExit, match="2"):
            main(["plot", "correlation", str(tmp_path / "qa.jsonl"), *given, *drawn[5:]])
        assert "RUNS: expected the runs to measure" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*drawn, "--labeller", "parent"])
    assert "--labeller: a result folder is already evaluated" in capsys.readouterr().err
    # What names a metric of the folder may have to be imported.
    assert main([*drawn, "--plugin", "json", "--allow-code"]) is None
    assert capsys.readouterr().out == f"{stored.plot().text}\n"
    ends = [str(tmp_path / "qa.jsonl"), *(str(tmp_path / f"{name}.jsonl") for name in runs)]
    with pytest.raises(SystemExit, match="2"):
        main(["plot", "correlation", *ends, *drawn[3:], "--dataset", "d"])
    assert "--dataset: TRUTH and RUNS are a single data set" in capsys.readouterr().err
    assert main(["plot", "correlation", *ends, "--convention", "trec", *drawn[3:]]) is None
    assert capsys.readouterr().out == f"{direct.plot().text}\n"


def test_too_few_runs_say_how_many_are_needed() -> None:
    runs = {name: {"q": ["a"]} for name in "abcd"}
    with pytest.raises(groupgt.ConfigError, match="expected at least 5, found 4"):
        groupgt.correlate({"q": [["a"]]}, {"q": [["a"]]}, runs, "map")
