"""Every consumer of queries treats every population as the table in the reference says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupgt
from docs.generate import populations as table
from docs.generate.populations import POPULATIONS, TREATMENTS
from groupgt.comparison.systems import Systems
from groupgt.evaluation.stages import stages
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.populations import Populations
from groupgt.report.experiment import summary
from groupgt.report.gates import junit_report
from groupgt.report.page import dataset_of, facts
from groupgt.report.shortfalls import shortfalls
from tests import browser

pytestmark = pytest.mark.slow

QIDS = {
    "answerable": [f"a{number:02}" for number in range(14)],
    "missing": ["m1", "m2", "m3"],
    "unanswerable": ["n1", "n2", "n3", "n4"],
    "undefined": ["u1", "u2"],
    "extra": ["e1", "e2", "e3", "e4", "e5"],
}
# What `World.without` removes: of the answerable queries only some, because an audit needs ten.
REMOVED = QIDS | {"answerable": ["a00", "a02"]}
METRICS = ["recall.coverage@5", "abstains"]


def row(qid: str) -> dict[str, Any]:
    """A line of ground truth; of the unanswerable queries, one has a document judged non-relevant."""
    kind = qid[0]
    groups = {"a": [[f"{qid}-1", f"{qid}-2"], [f"{qid}-3"]], "m": [[f"{qid}-1"]]}.get(kind, [])
    return {
        "qid": qid,
        "query": f"query {qid}",
        "retrieval_gt": groups,
        "kind": "all",
        **({"answerable": False} if kind == "n" else {}),
        **({"nonrelevant": ["z"]} if qid == "n1" else {}),
    }


@dataclass(frozen=True)
class World:
    """A ground truth, two runs, an audit with the same labels, and a policy; `folder` is for files."""

    folder: Path
    rows: tuple[dict[str, Any], ...]
    one: dict[str, dict[str, float]]
    two: dict[str, dict[str, float]]
    audited: tuple[str, ...]
    policy: str = "missing=zero"

    @classmethod
    def whole(cls, folder: Path) -> World:
        """All populations; some of each are audited."""
        rows = tuple(row(qid) for name, qids in QIDS.items() if name != "extra" for qid in qids)
        # The first run covers both groups of every second query and one group of the others; of four queries that have
        # no answer, it returns something for two, the second run for three.
        one = {qid: {f"{qid}-1": 0.9, f"{qid}-{3 - number % 2}": 0.8} for number, qid in enumerate(QIDS["answerable"])}
        two = {qid: {f"{qid}-3": 0.9, "z": 0.5} for qid in QIDS["answerable"]}
        others = [*QIDS["undefined"], *QIDS["extra"]]
        one |= {qid: {"z": 0.4} for qid in ["n1", "n2", *others]}
        two |= {qid: {"z": 0.4} for qid in ["n1", "n2", "n3", *others]}
        audited = [*QIDS["answerable"][:12], "m1", "m2", "n1", "n3", "u1"]
        return cls(folder, rows, one, two, tuple(audited))

    def without(self, population: str) -> World:
        """The world without these queries."""
        gone = REMOVED[population]
        return replace(
            self,
            rows=tuple(each for each in self.rows if each["qid"] not in gone),
            one={qid: results for qid, results in self.one.items() if qid not in gone},
            two={qid: results for qid, results in self.two.items() if qid not in gone},
            audited=tuple(qid for qid in self.audited if qid not in gone),
        )

    def with_nothing_found(self) -> World:
        """The world in which missing queries have a result that is not relevant."""
        junk = {qid: {"z": 0.4} for qid in QIDS["missing"]}
        return replace(self, one=self.one | junk, two=self.two | junk)

    def file(self, rows: Any, name: str) -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
        return path

    @property
    def truth(self) -> GroundTruth:
        return groupgt.read_ground_truth(self.file(self.rows, "truth.jsonl"))

    @property
    def runs(self) -> dict[str, Any]:
        return {"one": self.one, "two": self.two}

    @property
    def options(self) -> dict[str, Any]:
        return {"policy": self.policy, "convention": "coverage"}

    @property
    def audit(self) -> dict[str, Any]:
        rows = [each for each in self.rows if each["qid"] in self.audited]
        return {"audit": self.file(rows, "audit.jsonl"), "assume_random": True}

    def evaluation(self, metrics: list[str], **more: Any) -> groupgt.Evaluation:
        return groupgt.evaluate(self.truth, self.one, metrics, **self.options, **more)

    def comparison(self, metrics: list[str], **more: Any) -> groupgt.Comparison:
        return groupgt.compare(self.truth, self.runs, metrics, baseline="one", resamples=99, **self.options, **more)

    def experiment(self, metrics: list[str], *, audit: bool = False) -> Any:
        """An experiment with gates on both systems that fail, so that their reasons say the figures."""
        self.file(self.rows, "truth.jsonl")
        audited = f", audit: {self.audit['audit'].name}, assume_random: true" if audit else ""
        for name, run in self.runs.items():
            lines = [f"{qid} Q0 {doc} 1 {score} {name}\n" for qid, docs in run.items() for doc, score in docs.items()]
            (self.folder / f"{name}.trec").write_text("".join(lines), encoding="utf-8")
        gates = [f"  - {{system: one, metric: {metric}, min: 0.99}}\n" for metric in metrics]
        gates += [f"  - {{system: two, metric: {metric}, max_drop: 0.001}}\n" for metric in metrics]
        (self.folder / "e.yaml").write_text(
            f"version: 1\nname: e\ndatasets: {{d: {{ground_truth: truth.jsonl{audited}}}}}\n"
            "systems:\n  one: {use: results, with: {path: one.trec}}\n  two: {use: results, with: {path: two.trec}}\n"
            f"evaluate: {{metrics: [{', '.join(metrics)}], policy: {{{self.policy.replace('=', ': ')}}}}}\n"
            f"compare: {{baseline: one, resamples: 99}}\ngate:\n{''.join(gates)}",
            encoding="utf-8",
        )
        return groupgt.run_experiment(self.folder / "e.yaml", output=self.folder / "out")


def plain(value: Any) -> Any:
    """A figure to compare: NaN equals NaN, and rounding errors do not matter."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else round(value, 9)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


# --- What each consumer shows of a world, for some metrics.


def means(world: World, metrics: list[str]) -> Any:
    evaluation = world.evaluation(metrics)
    return [(evaluation[metric], evaluation.counted(metric)) for metric in metrics]


def slices(world: World, metrics: list[str]) -> Any:
    found = world.evaluation(metrics, by=["kind"])
    return found.slices


def contrasts(world: World, metrics: list[str], **more: Any) -> Any:
    rows = world.comparison(metrics, **more).rows
    return [(each.system, each.mean, each.queries, each.delta, each.pairs, each.unpaired, each.ties) for each in rows]


def sliced_contrasts(world: World, metrics: list[str]) -> Any:
    found = world.comparison(metrics, by=["kind"])
    return [(part.queries, [(each.mean, each.queries, each.pairs) for each in part.rows]) for part in found.slices]


def corrected(world: World, metrics: list[str]) -> Any:
    each = world.evaluation(metrics, **world.audit).corrected[metrics[0]]
    return each.mean, each.judged, each.audited, each.queries, each.sample


def corrected_contrasts(world: World, metrics: list[str]) -> Any:
    return contrasts(world, metrics[:1], **world.audit)


def of_annotators(world: World, metrics: list[str]) -> Any:
    return contrasts(world, metrics, annotators=[world.truth])


def gates(world: World, metrics: list[str]) -> Any:
    return [each.value for each in world.experiment(metrics).gates]


def audited_gates(world: World, metrics: list[str]) -> Any:
    return [each.value for each in world.experiment(metrics[:1], audit=True).gates]


def power(world: World, metrics: list[str]) -> Any:
    pytest.importorskip("scipy")
    powers = world.comparison(metrics).power(difference=0.1).powers
    return [(each.metric, each.queries, each.delta, each.spread, each.needed) for each in powers]


def completeness(world: World, metrics: list[str]) -> Any:
    found = world.comparison(metrics[:1])
    failures, headroom = found.failures, found.headroom
    assert failures is not None
    counts = failures.solved_counts, int(failures.counted.sum()), len(failures.nobody)
    return counts, [(each.mean, each.per_query, each.union_recall, each.union_complete) for each in headroom]


def misses(world: World, metrics: list[str]) -> Any:
    found = groupgt.misses(world.truth, world.one, 5, 100, policy=world.policy)
    return found.incomplete, found.evaluated, found.by_group, [each["qid"] for each in found.queries]


def depth(world: World, metrics: list[str]) -> Any:
    found = groupgt.depth(world.truth, world.one, [0.4, 0.9], policy=world.policy)
    return [(each.depth, each.interval, each.queries, each.reached) for each in found]


def thresholds(world: World, metrics: list[str]) -> Any:
    if not world.truth.unanswerable.any():
        return "nothing to find a threshold for"
    found = groupgt.thresholds(world.truth, world.one, 0.75, policy=world.policy)
    return [(each.threshold, each.abstains, each.recall) for each in found.thresholds], found.answerable


def stage(world: World, metrics: list[str]) -> Any:
    found = stages(world.truth, world.runs, by=["kind"], policy=world.policy)
    return found.stages, [sorted(each.items()) for each in found.groups], found.queries, found.kept, found.slices


def answered(world: World, metrics: list[str]) -> Any:
    qids = [qid for row in QIDS.values() for qid in row]
    found = groupgt.outcomes(
        world.truth, world.one, {qid: number % 2 for number, qid in enumerate(qids)}, k=5, policy=world.policy
    )
    return found.shares, found.queries


def curves(world: World, metrics: list[str]) -> Any:
    evaluation = world.evaluation(metrics[:1])
    # The subtitle names the number of queries.
    return [evaluation.plot(name).rows for name in ("depth", "ecdf")]


def asserted(world: World, metrics: list[str]) -> Any:
    said = shortfalls(world.evaluation(metrics), dict.fromkeys(metrics, 1.0))
    assert ("n1: 0.0000, declared unanswerable, with 1 result" in said.replace(" “query n1”", "")) == (
        "abstains" in metrics and "n1" in world.truth
    )
    return [line for line in said.splitlines() if line.startswith(tuple(metrics))]


def page_means(world: World, metrics: list[str]) -> Any:
    data = dataset_of(Systems.of(world.comparison(metrics, by=["kind"]).evaluations, is_baseline_named=False), "d")
    return [(each["means"], each["queries"]) for each in data["systems"]], data["slices"]


def in_summary(world: World, metrics: list[str]) -> Any:
    return [line for line in summary(world.experiment(metrics)).splitlines() if line.startswith(("- FAILED", "|"))]


def in_junit(world: World, metrics: list[str]) -> Any:
    return junit_report(world.experiment(metrics))


def in_csv(world: World, metrics: list[str]) -> Any:
    _, rows = world.evaluation(metrics, by=["kind"])._teller.csv_rows()
    return rows


FIGURES: dict[str, Callable[[World, list[str]], Any]] = {
    "means": means,
    "slices": slices,
    "contrasts": contrasts,
    "slices of contrasts": sliced_contrasts,
    "means corrected by an audit": corrected,
    "contrasts corrected by an audit": corrected_contrasts,
    "means over annotators": of_annotators,
    "gates": gates,
    "gates with an audit": audited_gates,
    "power": power,
    "complete queries and headroom": completeness,
    "`misses`": misses,
    "`depth`": depth,
    "`depth --unit score`": thresholds,
    "`stages`": stage,
    "`outcomes`": answered,
    "curves and other figures": curves,
    "`assert_at_least`": asserted,
    "page: means and slices": page_means,
    "summary": in_summary,
    "JUnit": in_junit,
    "CSV of means": in_csv,
}


# --- What each treatment means.


def check_counts(figure: Callable[[World, list[str]], Any], world: World, population: str) -> None:
    assert plain(figure(world, METRICS)) != plain(figure(world.without(population), METRICS))


def check_out(figure: Callable[[World, list[str]], Any], world: World, population: str) -> None:
    assert plain(figure(world, METRICS)) == plain(figure(world.without(population), METRICS))


def check_zero(figure: Callable[[World, list[str]], Any], world: World, population: str) -> None:
    check_counts(figure, world, population)
    assert plain(figure(world, METRICS)) == plain(figure(world.with_nothing_found(), METRICS))
    check_out(figure, replace(world, policy="missing=skip"), population)


def check_apart(figure: Callable[[World, list[str]], Any], world: World, population: str) -> None:
    alone = METRICS[:1]
    assert plain(figure(world, alone)) == plain(figure(world.without(population), alone))
    check_counts(figure, world, population)


MEANT = {
    table.COUNTS: check_counts,
    table.OUT: check_out,
    table.BESIDE: check_out,
    table.ZERO: check_zero,
    table.APART: check_apart,
}


# --- Consumers that are not figures.


def counts_below(world: World) -> str:
    return world.evaluation(METRICS).text()


def page_facts(world: World) -> str:
    return "\n".join(f"{name} {text}" for name, text in facts(Systems.of({"one": world.evaluation(METRICS)})))


def check_findings(world: World) -> str:
    found = groupgt.check(world.truth, {"one": world.one})
    return "\n".join(f"{each.what} {each.count}" for part in found.findings.values() for each in part)


def depth_table(world: World) -> str:
    found = groupgt.depth(world.truth, world.one, 0.9)
    return f"undefined {found[0].undefined} unanswerable {found[0].unanswerable}\n" + found.text()


# 14 answerable and 3 missing queries count.
SAID: dict[tuple[Callable[[World], str], str], str] = {
    (counts_below, "answerable"): r"23 queries: evaluated 17,",
    (counts_below, "missing"): r"missing 3\b",
    (counts_below, "unanswerable"): r"\b4 queries declared unanswerable; 2 of them have no row",
    (counts_below, "undefined"): r"undefined 2\b",
    (counts_below, "extra"): r"extra 5\b",
    (page_facts, "answerable"): r"queries 23, of which 17 have a group",
    (page_facts, "missing"): r"queries without results 3\b",
    (page_facts, "unanswerable"): r"queries declared unanswerable 4\b",
    (page_facts, "undefined"): r"queries without ground truth 2\b",
    (page_facts, "extra"): r"results without ground truth 5\b",
    (check_findings, "answerable"): r"queries 23\n(.|\n)*queries with results 18\n",
    (check_findings, "missing"): r"\(missing\) 3\n",
    (check_findings, "unanswerable"): r"declared unanswerable 4\n",
    (check_findings, "undefined"): r"\(undefined\) 2\n",
    (check_findings, "extra"): r"\(extra\) 5\n",
    (depth_table, "unanswerable"): r"unanswerable 4\b",
    (depth_table, "undefined"): r"undefined 2\b",
}
COUNTERS = {"counts below tables": counts_below, "page: facts": page_facts, "`check`": check_findings}


def check_counted(consumer: str, world: World, population: str) -> None:
    assert re.search(SAID[COUNTERS[consumer], population], COUNTERS[consumer](world))


def check_explained(world: World, population: str) -> None:
    qid = QIDS[population][0]
    if population == "extra":
        with pytest.raises(groupgt.DataError, match=f"query '{qid}' is not in the ground truth"):
            world.evaluation(METRICS).explain(qid)
        return
    evaluation = world.evaluation(METRICS)
    figures = {each["metric"]: each["value"] for each in evaluation.explain_dict(qid)["metrics"]}
    there = {metric: float(evaluation.values[metric][evaluation.truth.index[qid]]) for metric in METRICS}
    assert plain(list(figures.values())) == plain([None if math.isnan(value) else value for value in there.values()])
    text = " ".join(evaluation.explain(qid).split())
    assert ("is declared unanswerable" in text) == (population == "unanswerable")
    assert ("is undefined (no ground truth)" in text) == (population == "undefined")


def check_per_query(world: World, population: str) -> None:
    frame = {qid: values for qid, *values in world.evaluation(METRICS).per_query.rows()}
    if population == "extra":
        assert not set(QIDS["extra"]) & set(frame)
        return
    # a00 covers both groups; n1 gets a result.
    expected = {"answerable": [1.0, None], "missing": [0.0, None], "unanswerable": [None, 0.0], "undefined": [None] * 2}
    assert frame[QIDS[population][0]] == expected[population]


def check_page_query(world: World, population: str) -> None:
    data = dataset_of(Systems.of({"one": world.evaluation(METRICS)}), "d")
    questions = data["questions"]
    assert set(QIDS[population]) <= set(questions["qids"]) or population == "extra"
    assert not set(QIDS["extra"]) & set(questions["qids"])
    if population == "extra":
        return
    said = [questions["out"].get(str(questions["qids"].index(qid)), "") for qid in QIDS[population]]
    begins = {
        "unanswerable": "This query is declared unanswerable",
        "undefined": "This query has no ground truth",
    }.get(population, "")
    assert all(text.startswith(begins) if begins else not text for text in said)


CONVERT = re.compile(r"`convert --to (.+)`")


def check_converted(format: str, treatment: str, world: World, population: str) -> None:
    # Most formats have one alternative a group, and no groups: documents judged non-relevant are lines there.
    rows = [{**each, "retrieval_gt": each["retrieval_gt"][-1:]} for each in world.rows]
    graded = format not in ("parquet", "nuggetbank")
    rows = [{key: value for key, value in each.items() if graded or key != "nonrelevant"} for each in rows]
    shape = "flat" if format in ("trec", "beir", "qrels-flat") else "subtopics"
    if format not in ("trec", "beir", "qrels-flat"):
        rows = [
            {**each, "retrieval_gt": [[*group, f"{each['qid']}-9"] for group in each["retrieval_gt"]]} for each in rows
        ]
    else:
        rows = [
            {**each, "retrieval_gt": [[name] for group in each["retrieval_gt"] for name in group[:1]]} for each in rows
        ]
    truth = groupgt.read_ground_truth(world.file(rows, "truth.jsonl")).of_shape(shape)  # type: ignore[arg-type]
    target = world.folder / f"out.{format}"
    told = written_as(truth, target, format)
    again = groupgt.read_ground_truth(target, {"qrels-flat": "trec", "tsv": "csv"}.get(format, format))
    before, after = of_truth(truth), of_truth(again)
    if population == "extra":
        assert set(again.qids) <= set(truth.qids)
        return
    kind = "answerable" if population == "missing" else population
    there = {qid for qid in QIDS[population] if after.get(qid) == kind}
    assert {before[qid] for qid in QIDS[population]} == {kind}
    if treatment == table.KEPT:
        assert there == set(QIDS[population])
    else:
        assert not there
        what = {
            "unanswerable": "that 4 queries are declared unanswerable",
            "undefined": "2 queries without ground truth",
        }[kind]
        assert what in told


def written_as(truth: GroundTruth, target: Path, format: str) -> str:
    from groupgt.formats.write import write_ground_truth

    return ", ".join(write_ground_truth(target, truth, format))


def of_truth(truth: GroundTruth) -> dict[str, str]:
    """The population of each query as far as the ground truth decides it."""
    found = Populations(truth.judgments)
    masks = {"unanswerable": found.unanswerable, "undefined": found.undefined, "answerable": found.defined}
    return {truth.qids[at]: name for name, mask in masks.items() for at in np.flatnonzero(mask).tolist()}


def check_offered(world: World, population: str) -> None:
    from groupgt.cli.judge import _texts

    offered = _texts(world.truth, None)
    assert set(QIDS[population]) <= set(offered) if population != "extra" else not set(QIDS["extra"]) & set(offered)


MARKED = """
import pytest
RUN = {run!r}

@pytest.mark.groupgt("truth.jsonl", convention="coverage")
def test_search(groupgt_query):
    groupgt_query.assert_at_least(RUN.get(groupgt_query.id, []), {{"recall@5": 0.4, "abstains": 1}})
"""


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The outcome of the test of each query, by query id."""
    import subprocess
    import sys

    world = World.whole(tmp_path_factory.mktemp("marked"))
    world.file(world.rows, "truth.jsonl")
    run = {qid: list(results) for qid, results in world.one.items()}
    (world.folder / "test_it.py").write_text(MARKED.format(run=run), encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(words, cwd=world.folder, capture_output=True, text=True, check=False)
    return dict(re.findall(r"test_search\[(\w+)\] (PASSED|FAILED|SKIPPED)", done.stdout))


# Of the queries without an answer, the run returns something for n1 and n2.
OUTCOMES = {"answerable": {"PASSED"}, "missing": {"FAILED"}, "unanswerable": {"FAILED", "PASSED"}}


def check_marked(outcomes: dict[str, str], population: str) -> None:
    found = {qid: outcome for qid, outcome in outcomes.items() if qid in QIDS[population]}
    assert set(found.values()) == OUTCOMES.get(population, set())
    assert list(found) == (QIDS[population] if population in OUTCOMES else [])
    if population == "unanswerable":
        assert found == {"n1": "FAILED", "n2": "FAILED", "n3": "PASSED", "n4": "PASSED"}


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("consumer", TREATMENTS)
def test_every_cell(consumer: str, population: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = World.whole(tmp_path)
    treatment = dict(zip(POPULATIONS, TREATMENTS[consumer]))[population]
    if consumer in FIGURES:
        MEANT[treatment](FIGURES[consumer], world, population)
        if treatment == table.BESIDE:
            assert re.search(SAID[depth_table, population], depth_table(world))
    elif consumer in COUNTERS:
        check_counted(consumer, world, population)
    elif match := CONVERT.fullmatch(consumer):
        check_converted(match[1], treatment, world, population)
    else:
        special: dict[str, Callable[[], None]] = {
            "`explain`": lambda: check_explained(world, population),
            "values per query": lambda: check_per_query(world, population),
            "page: queries": lambda: check_page_query(world, population),
            "judge page": lambda: check_offered(world, population),
            "pytest marker": lambda: check_marked(request.getfixturevalue("marked"), population),
        }
        special[consumer]()


def test_the_table_has_every_consumer_once() -> None:
    tested = {*FIGURES, *COUNTERS, *filter(CONVERT.fullmatch, TREATMENTS)}
    assert tested | {"`explain`", "values per query", "page: queries", "judge page", "pytest marker"} == set(TREATMENTS)
    assert all(len(treatments) == len(POPULATIONS) for treatments in TREATMENTS.values())


@pytest.mark.parametrize("population", POPULATIONS)
def test_the_page_of_a_query_says_why_it_does_not_count(population: str, tmp_path: Path) -> None:
    if browser.found() is None:
        pytest.skip("no browser is installed")
    world = World.whole(tmp_path)
    world.comparison(METRICS).to_html(tmp_path / "report.html")
    qid = QIDS[population][0]
    with browser.running() as chromium:
        tab = chromium.tab()
        tab.open(tmp_path / "report.html", f"#question?id={qid}")
        tab.settled()
        shown = tab.text("main")
        assert tab.errors == []
    said = {
        "answerable": "Complete @5 in",
        "missing": "Not complete @5 in any system.",
        "unanswerable": "This query is declared unanswerable",
        "undefined": "This query has no ground truth, so no mean includes it.",
        "extra": f"This page does not contain the query {qid}",
    }
    assert [name for name, text in said.items() if text in shown] == [population]


def test_a_slice_counts_the_queries_that_have_a_value(tmp_path: Path) -> None:
    world = World.whole(tmp_path)
    kinds = {"a": "answerable", "m": "answerable", "n": "declared", "u": "unknown"}
    rows = tuple({**each, "kind": kinds[each["qid"][0]]} for each in world.rows)
    found = replace(world, rows=rows).evaluation(METRICS, by=["kind"])
    assert [(part["value"], part["queries"]) for part in found.slices] == [
        ("answerable", 17),
        ("declared", 4),
        ("unknown", 0),
    ]
    # The last column counts the queries of each mean: recall of answerable queries, abstains of the declared ones.
    _, lines = found._teller.csv_rows()
    assert [line[-1] for line in lines] == [17, 4, 17, 0, 0, 4, 0, 0]


def test_each_run_has_its_own_count_of_queries_that_it_leaves_out(tmp_path: Path) -> None:
    world = World.whole(tmp_path)
    shown = str(groupgt.evaluate_runs(world.truth, world.runs, METRICS, **world.options))
    assert re.search("one: .*; 4 queries declared unanswerable; 2 of them have no row in the run", shown)
    assert re.search("two: .*; 4 queries declared unanswerable; 1 of them", shown)


def test_declared_queries_alone_have_means(tmp_path: Path) -> None:
    world = World.whole(tmp_path)
    for population in ("answerable", "missing", "undefined"):
        world = replace(world, rows=tuple(each for each in world.rows if each["qid"] not in QIDS[population]))
    shown = str(groupgt.evaluate_runs(world.truth, world.runs, ["abstains"], **world.options))
    assert "0.5000" in shown
    assert "so there are no means" not in shown
    assert "so there are no means" in str(groupgt.evaluate_runs(world.truth, world.runs, ["recall"]))
