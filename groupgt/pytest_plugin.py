"""Pytest plug-in that records evaluations made by tests, shows them after the run, and writes them as pages.

The plug-in imports no part of groupgt until a test uses the `groupgt_evaluate` fixture or the `groupgt` marker.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from groupgt.evaluation.result import Evaluated
    from groupgt.model.ground_truth import GroundTruth

CASE = "groupgt_query"
# The key of a worker's records in what pytest-xdist sends to the main process.
SENT = "groupgt"
# The file, line and name of a test: evaluations are shown in this order, whichever process finishes first.
Place = tuple[str, int, str]


@dataclass
class Cases:
    """Results and metrics, by query id, for a test that runs once per query, with the options of its marker."""

    place: Place
    stem: str
    truth: GroundTruth
    options: dict[str, Any]
    results: dict[str, tuple[Any, tuple[str, ...]]] = field(default_factory=dict)

    def evaluation(self) -> Evaluated:
        """Evaluate the queries that have results, because some tests may have been deselected."""
        truth = self.truth.select(number for number, qid in enumerate(self.truth.qids) if qid in self.results)
        metrics = dict.fromkeys(metric for qid in truth.qids for metric in self.results[qid][1])
        run = {qid: results for qid, (results, _) in self.results.items()}
        return _evaluated(truth, run, list(metrics), self.place[-1], self.options)


@dataclass
class Records:
    """Evaluations made by the tests of a session, as (place, page, evaluation), and per-query tests by place."""

    evaluations: list[tuple[Place, str, Evaluated]] = field(default_factory=list)
    cases: dict[Place, Cases] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def merge(self, other: Records) -> None:
        """Add records from another process."""
        self.evaluations += other.evaluations
        self.shown += other.shown
        for place, cases in other.cases.items():
            self.cases.setdefault(place, cases).results |= cases.results

    def sent(self) -> bytes:
        """Pickle the records for the main process, with the results of runs as plain lists."""
        from groupgt.engines.carriers import all_rankings
        from groupgt.evaluation.result import Evaluation
        from groupgt.model.run import Run

        def plain(evaluation: Evaluated) -> Any:
            if not isinstance(evaluation, Evaluation):
                return replace(evaluation, repeats=tuple(map(plain, evaluation.repeats)))
            rankings = {qid: ids for qid, (ids, _) in all_rankings(evaluation.run, evaluation.policy)}
            run = replace(Run.of(rankings, evaluation.name), is_build=evaluation.is_build)
            return replace(evaluation, run=run)

        sent = [(place, stem, plain(evaluation)) for place, stem, evaluation in self.evaluations]
        try:
            return pickle.dumps(replace(self, evaluations=sent))
        except Exception as error:  # whatever the objects of users raise
            return pickle.dumps(Records(shown=[f"error: evaluations cannot be sent to pytest-xdist: {error}"]))

    def tables(self) -> Iterator[tuple[str, dict[str, Evaluated]]]:
        """Yield (page, evaluations by name) for each ground truth, convention and list of metrics."""
        per_query = [(cases.place, cases.stem, cases.evaluation()) for cases in self.cases.values() if cases.results]
        tables: dict[Any, tuple[str, dict[str, Evaluated]]] = {}
        for _, stem, evaluation in sorted([*self.evaluations, *per_query], key=itemgetter(0)):
            key = evaluation.truth.digest, evaluation.convention, *evaluation.metrics.items()
            _, by_name = tables.setdefault(key, (_new(stem, [page for page, _ in tables.values()]), {}))
            by_name[_new(evaluation.name, by_name)] = evaluation
        yield from tables.values()


@dataclass(frozen=True)
class QueryCase:
    """A query as a test case, with its `id`, `text` (None if the ground truth has none) and `groups`."""

    id: str
    text: str | None
    groups: list[Any]
    _cases: Cases = field(repr=False)

    def assert_at_least(self, results: Any, least: Mapping[str, float]) -> None:
        """Raise `AssertionError`, listing the groups that are missed, unless each metric reaches its minimum.

        Metrics that are undefined for this query are skipped: `abstains` for a query with an answer, all but
        `abstains` and `false_returns` for a query declared unanswerable, and `clean` for a query without harmful
        passages.

        Args:
            results: Results for this query, best first, as a list or `{id: score}`.
            least: Minimum value for each metric.
        """
        __tracebackhide__ = True
        cases = self._cases
        truth = cases.truth.select([cases.truth.index[self.id]])
        evaluation = _evaluated(truth, {self.id: results}, list(least), "results", cases.options)
        cases.results[self.id] = results, tuple(least)
        kinds = {"unanswerable" if evaluation.populations.unanswerable[0] else "answerable"}
        if truth.judgments.names_harmful[0]:
            kinds.add("harmful")
        metrics = {text: evaluation.metrics[evaluation.text_of(text)] for text in least}
        of_query = {text for text, metric in metrics.items() if metric.definition.queries in kinds}
        evaluation.assert_at_least({text: number for text, number in least.items() if text in of_query})


RECORDS = pytest.StashKey[Records]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the --groupgt-report option."""
    text = "Write a page to DIR for each ground truth that tests use."
    parser.getgroup("groupgt").addoption("--groupgt-report", metavar="DIR", type=Path, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    text = "groupgt(truth, **options): run the test once per query of the ground truth, in the groupgt_query fixture"
    config.addinivalue_line("markers", text)
    config.stash[RECORDS] = Records()


@pytest.fixture
def groupgt_evaluate(request: pytest.FixtureRequest) -> Any:
    """Return `groupgt.evaluate`. Evaluations are shown after the run, named after the test unless `name` is set."""

    def evaluate(truth: Any, run: Any, metrics: Any, *, name: str = request.node.name, **options: Any) -> Evaluated:
        evaluation = _evaluated(truth, run, metrics, name, options)
        request.config.stash[RECORDS].evaluations.append((_place(request.node, name), _stem(truth), evaluation))
        return evaluation

    return evaluate


@pytest.fixture
def groupgt_query(request: pytest.FixtureRequest) -> QueryCase:
    """Return one query from the ground truth in the `groupgt` marker."""
    if not hasattr(request, "param"):
        pytest.fail("groupgt_query: expected @pytest.mark.groupgt(TRUTH) on the test, found none", pytrace=False)
    number, stem, truth, options = request.param
    callspec = request.node.callspec
    # Parameters as pytest shows them.
    others = [
        str(value if isinstance(value, (str, int, float)) else callspec.indices[name])
        for name, value in callspec.params.items()
        if name != CASE
    ]
    key = _place(request.node, request.node.originalname + (f"[{'-'.join(others)}]" if others else ""))
    cases = request.config.stash[RECORDS].cases.setdefault(key, Cases(key, stem, truth, options))
    qid = truth.qids[number]
    return QueryCase(qid, truth.texts[number] if truth.texts else None, truth[qid], cases)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Create a test case for each query that has an answer or is declared to have none."""
    marker = metafunc.definition.get_closest_marker("groupgt")
    if marker is None or CASE not in metafunc.fixturenames:
        return
    from groupgt.errors import GroupgtError
    from groupgt.evaluation.options import TruthOptions
    from groupgt.evaluation.reading import Reading
    from groupgt.model.populations import Populations
    from groupgt.options import options_of

    options = dict(marker.kwargs)
    if len(marker.args) != 1:
        pytest.fail(f"@pytest.mark.groupgt: expected one ground truth, found {len(marker.args)}", pytrace=False)
    try:
        truth = Reading.of(**options).truth(marker.args[0])
    except GroupgtError as error:
        raise pytest.fail.Exception(f"@pytest.mark.groupgt: {error}", pytrace=False) from None
    # The ground truth is read and its queries are selected.
    read = options_of(TruthOptions)
    options = {name: value for name, value in options.items() if name == "policy" or name not in read}
    queries = (~Populations(truth.judgments).undefined).nonzero()[0].tolist()
    values = [(number, _stem(marker.args[0]), truth, options) for number in queries]
    metafunc.parametrize(CASE, values, ids=[truth.qids[number] for number in queries], indirect=True)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add records from a pytest-xdist worker."""
    if sent := getattr(node, "workeroutput", {}).get(SENT):
        node.config.stash[RECORDS].merge(pickle.loads(sent))  # noqa: S301 - from a worker of this session


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the pages or, in a pytest-xdist worker, send the records to the main process."""
    records, folder = session.config.stash[RECORDS], session.config.getoption("groupgt_report")
    if not (records.evaluations or records.cases or records.shown):
        return
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[SENT] = records.sent()
        return
    from groupgt.comparison.compare import comparison_of
    from groupgt.comparison.settings import Settings
    from groupgt.errors import GroupgtError
    from groupgt.evaluation.runs import Evaluations

    try:
        for page, by_name in records.tables():
            name, first = next(iter(by_name.items()))
            title = f"{name}:\n" if len(by_name) == 1 else ""
            records.shown.append(title + Evaluations(by_name, (first.convention,)).text())
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                comparison_of(by_name, name, Settings()).to_html(folder / f"{page}.html")
                records.shown.append(f"report: {folder / page}.html")
    except (GroupgtError, OSError) as error:
        records.shown.append(f"error: {error}")
    if any(text.startswith("error: ") for text in records.shown):
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Show the means."""
    if shown := config.stash[RECORDS].shown:
        terminalreporter.section("groupgt")
        terminalreporter.write_line("\n\n".join(shown))


def _evaluated(truth: Any, run: Any, metrics: Any, name: str, options: dict[str, Any]) -> Evaluated:
    from groupgt.evaluation.evaluate import evaluate

    return evaluate(truth, run, metrics, name=name, **options)


def _place(node: Any, name: str) -> Place:
    file, line, _ = node.location
    return file, line or 0, name


def _stem(truth: Any) -> str:
    return Path(truth).stem if isinstance(truth, (str, Path)) else "ground-truth"


def _new(name: str, taken: Any) -> str:
    """Return the name, with a number appended if it is already taken."""
    numbered = (f"{name}-{number}" for number in count(2))
    return next(candidate for candidate in chain([name], numbered) if candidate not in taken)
