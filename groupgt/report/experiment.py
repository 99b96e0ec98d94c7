"""Report an `Outcome` as text (sentences, gates, tables and times), data, figures, a page and a summary."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import groupgt
from groupgt.comparison.compare import Comparison
from groupgt.errors import ConfigError, near_names, printable
from groupgt.evaluation.result import Evaluated
from groupgt.experiment.outcome import FAILED, GateResult, Outcome
from groupgt.render import tables
from groupgt.render.bars import Axis
from groupgt.render.document import Detail, Heading, Item, Verdict, document, typeset
from groupgt.render.drawing import Drawable, Figure, drawing
from groupgt.render.page import data
from groupgt.render.page.page import page_bytes
from groupgt.render.results import Teller
from groupgt.render.tables import DIGITS, Grid, counted, markdown
from groupgt.report import (
    across,
    comparison,
    contrasts,
    curves,
    differences,
    gates,
    means,
    outcomes,
    page,
    previous,
    priorities,
    standings,
    times,
    trials,
)
from groupgt.report.decision import Decision, decisions, overall, overall_card
from groupgt.report.drawings import of_comparison
from groupgt.report.page import Added
from groupgt.report.results import means_grid, results_of
from groupgt.report.sentences import enumerated, grouped, sentence_of, warning
from groupgt.report.stages import items as staged
from groupgt.report.tracking import tracked_pairs

# Kinds of sentences that come last.
LAST = ("doubt", "note")
# Parts of a data set that are data; secrets are not removed from them.
MEASURED = ("questions", "details", "passages")


class OutcomeTeller(Teller[Outcome]):
    """Report the verdict, the tables of every data set with notes on the population, and the gates."""

    @property
    def title(self) -> str:
        """The title of the experiment."""
        return self.result.experiment.title

    @property
    def main_figure(self) -> str:
        """The name of the forest plot if there is only one data set, otherwise empty."""
        return "means" if sum(map(bool, self.result.evaluations.values())) == 1 else ""

    def blocks(self) -> list[Item]:
        """Return the full report except times."""
        return list(items(self.result))

    def metrics(self) -> dict[str, float]:
        """Return the means of each system as a flat dict. With several data sets, names begin with the data set."""
        means = {
            (dataset, system): {each.label_of(text): mean for text, mean in each.means.items()}
            for dataset, by_system in self.result.evaluations.items()
            for system, each in by_system.items()
        }
        return tracked_pairs(means, several=len(self.result.evaluations) > 1)

    def csv_rows(self) -> Grid:
        """Return headers and one row per mean, overall and for each slice, as in means.csv."""
        return means_grid(self.result)

    def to_dict(self) -> Any:
        """Return everything except times as plain Python objects, as in results.json."""
        return results_of(self.result)

    def figures(self, dataset: str | None = None) -> Drawable:
        """Return figures of the requested or only data set. Raise `ConfigError` if there is no such data set."""
        outcome = self.result
        name = chosen([name for name, by_system in outcome.evaluations.items() if by_system], dataset)
        systems = outcome.systems[name]
        latency = times.figure(systems, times.latencies(outcome, name))
        drawings = of_comparison(systems, outcome.comparison.get(name, systems))
        return drawings | existing_figures(curves.sweeps(outcome, systems), latency)

    def page(self) -> bytes:
        """Return the HTML page of the experiment."""
        return page_bytes(page_of(self.result), self.result.experiment.config.report.max_size)


def items(outcome: Outcome, *, timed: bool = False) -> Iterator[Item]:
    """Return the full report of an outcome, verdict first. `timed` includes times."""
    return map(outcome.experiment.hide.sure, _items(outcome, timed=timed))


def _items(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    several = len(outcome.evaluations) > 1
    yield from verdicts(outcome, timed=timed)
    yield from across.blocks(outcome.experiment, outcome.evaluations)
    if outcome.across is not None:
        yield from across.tables(outcome.across)
    for dataset, decision in decisions(outcome).items():
        if several:
            yield f"dataset {dataset}"
        if judged := [gate for gate in outcome.gates if gate.dataset == dataset and (timed or not gate.timed)]:
            yield gates.table(judged, outcome.experiment.config.baseline)
        if outcome.evaluations[dataset]:
            yield from _tables(outcome, dataset)
            yield priorities.foot(outcome.systems[dataset], decision, outcome.against.get(dataset))
    yield from gates.blocks(outcome, timed=timed)
    if timed:
        yield from times.blocks(outcome)


def summary(outcome: Outcome) -> str:
    """Summarize gates, then each data set: verdict, failed gates, primary metric, and queries lost and gained."""
    parts: list[Item] = [Heading(outcome.experiment.title), Verdict(list(across.verdict_of(outcome)))]
    made = decisions(outcome)
    if len(made) > 1:
        parts.append(overall_card(made, outcome.gates))
    for dataset, decision in made.items():
        evaluations = outcome.evaluations[dataset]
        parts.append(Heading(dataset, 3) if len(made) > 1 else decision.card)
        parts.append(Verdict(notes(outcome, dataset, decision, timed=True)))
        judged = _gates_on(outcome, dataset)
        parts += gates.summary(judged, outcome.experiment.config.baseline)
        parts += gates.failed(outcome, dataset)
        if evaluations:
            parts += comparison.changed(outcome.systems[dataset], decision, judged, outcome.against.get(dataset))
            parts += previous.blocks(outcome, dataset)
    if outcome.across is not None:
        parts += across.tables(outcome.across)
    if note := times.reused(outcome):
        parts.append(note)
    if outcome.folder is not None and (outcome.folder / "report.html").is_file():
        parts.append("To see every query, open report.html in this run's result folder.")
    return document(outcome.experiment.hide.sure(parts), "github")


def failure_summary(title: str, why: str) -> str:
    """Summarize a run that ended in an error. Show the error as literal text, not as Markdown."""
    lines = "\n".join(f"    {line}" for line in printable(why).splitlines())
    return f"## {markdown(printable(title))}\n\nThe run failed before any gate was evaluated:\n\n{lines}"


def verdicts(outcome: Outcome, *, timed: bool) -> Iterator[Item]:
    """Yield the result of a test across data sets, and the decision on every data set with its details."""
    yield Verdict(list(across.verdict_of(outcome)))
    made = decisions(outcome)
    if len(made) > 1:
        yield overall_card(made, [gate for gate in outcome.gates if timed or not gate.timed])
    for dataset, decision in made.items():
        yield headline(outcome, dataset)
        if len(made) == 1:
            yield decision.card
        yield Verdict(notes(outcome, dataset, decision, timed=timed))


def headline(outcome: Outcome, dataset: str) -> str:
    """Describe in one line what was measured: `sweep · handbook · 82 of 88 queries evaluated`."""
    parts = [outcome.experiment.title, dataset]
    if (systems := outcome.systems.get(dataset)) is not None:
        parts.append(means.evaluated_of(systems))
    if failed := outcome.failed.get(dataset):
        parts.append(f"{len(failed):,} of {counted(len(failed) + len(outcome.evaluations[dataset]), 'system')} failed")
    return " · ".join(parts)


def notes(outcome: Outcome, dataset: str, decision: Decision, *, timed: bool) -> list[data.Sentence]:
    """Return the details of the decision on a data set, warnings last. `timed` adds details that vary by run."""
    found = [*previous.sentences(outcome, dataset)]
    if outcome.evaluations[dataset]:
        found += differences.notes(outcome.systems[dataset], decision.note)
    judged = _gates_on(outcome, dataset)
    return [
        *(sentence for sentence in found if sentence["kind"] not in LAST),
        *_best(outcome, dataset, timed=timed),
        *(sentence_of("doubt", "", name, f" {FAILED}: {why}") for name, why in outcome.failed.get(dataset, {}).items()),
        *(warning(each.text) for each in outcome.warnings.get(dataset, [])),
        *(sentence for sentence in found if sentence["kind"] in LAST),
        *gates.notes(judged),
    ]


def _on_time(outcome: Outcome, dataset: str) -> Iterator[data.Sentence]:
    """Yield the sentences on one data set that vary from run to run."""
    if not outcome.experiment.rule.is_timeless:
        yield from _best(outcome, dataset, timed=True)
    if note := times.reused(outcome, dataset):
        yield warning(note)


def _best(outcome: Outcome, dataset: str, *, timed: bool) -> Iterator[data.Sentence]:
    """Name the best system according to the file's rule, unless that rule is just the primary metric."""
    rule, leaders = outcome.experiment.rule, outcome.leaders.get(dataset, [])
    alone = outcome.experiment.config.evaluate.best.strategy == "primary" and rule.is_timeless
    if alone or len(outcome.evaluations[dataset]) < 2 or not (timed or rule.is_timeless):
        return
    first, *names = enumerated(leaders or ["none"], ".")
    yield sentence_of("best", f"Best by {rule.words}: {first}", *names)


def _gates_on(outcome: Outcome, dataset: str) -> list[GateResult]:
    return [gate for gate in outcome.gates if gate.dataset == dataset]


def _tables(outcome: Outcome, dataset: str) -> Iterator[Item]:
    evaluations = list(outcome.evaluations[dataset].values())
    convention, primary = outcome.experiment.convention, outcome.experiment.primary
    is_compared = dataset in outcome.comparison and len(evaluations) > 1
    if len(evaluations) == 1:
        yield from means.grids(evaluations, [convention])
    elif not is_compared:
        yield standings.table(outcome.systems[dataset])
        yield from map(Detail, contrasts.leaderboards(outcome.systems[dataset]))
    if not is_compared:
        yield from trials.blocks(outcome.evaluations[dataset], [evaluations[0].text_of(primary)], digits=DIGITS)
    has_columns = len(evaluations) <= means.MOST_COLUMNS
    yield from map(Detail, means.slice_tables(evaluations) if has_columns else means.slices_of(evaluations, primary))
    if is_compared:
        table = outcome.comparison[dataset]
        compared = list(table.metrics)
        # In full by the primary metric, or by all if it is not compared.
        in_full = [text for text in compared if text == evaluations[0].text_of(primary)] or compared
        if len(in_full) < len(compared):
            yield from map(Detail, _deltas(table, evaluations[0]))
        judged = _gates_on(outcome, dataset)
        yield from comparison.items(outcome.systems[dataset], in_full, brief=True, gates=judged)
    yield from previous.blocks(outcome, dataset)
    for name, stages in outcome.stages.get(dataset, {}).items():
        yield f"stages of {name}"
        yield from staged(stages)
    for name, each in outcome.answered.get(dataset, {}).items():
        sentence, counts, *rest = outcomes.items(each)
        yield from (f"outcomes of {name}", sentence, counts)
        yield from (item if isinstance(item, Detail) else Detail(item) for item in rest)
    yield from means.below_means(evaluations, [convention])
    yield from means.corrected_blocks(evaluations, compared=is_compared)
    yield Detail(f"policy {evaluations[0].policy}")


def _deltas(table: Comparison, first: Evaluated) -> Iterator[Grid]:
    """Yield each system's differences from the baseline, in one table per cutoff if there are many metrics."""
    by_cutoff = len(table.metrics) > tables.WIDEST
    for texts in grouped((each.cutoff if by_cutoff else None, text) for text, each in table.metrics.items()).values():
        headers = [f"against {table.baseline}", "queries", *(first.label_of(text) for text in texts)]
        others = {name: [table[name][text] for text in texts] for name in table.names if name != table.baseline}
        counts = {name: tables.range_text([row.pairs or 0 for row in rows]) for name, rows in others.items()}
        yield headers, [[name, counts[name], *map(contrasts.delta_text, rows)] for name, rows in others.items()]


def chosen(names: Sequence[str], dataset: str | None) -> str:
    """Return the requested data set, or the only one. Raise `ConfigError` if there is no such data set."""
    if dataset in names or (dataset is None and len(names) == 1):
        return names[0] if dataset is None else dataset
    what = "none named" if dataset is None else f"{dataset!r}{near_names(dataset, names)}"
    raise ConfigError(f"dataset: expected one of {', '.join(names)}, found {what}")


def existing_figures(swept: Mapping[str, Figure], against_latency: Figure | None) -> Drawable:
    """Wrap finished figures as functions. The first sweep is also available as just `sweep`."""
    drawings: Drawable = {name: lambda figure=figure: figure for name, figure in swept.items()}  # type: ignore[misc]
    if swept:
        drawings["sweep"] = next(iter(drawings.values()))
    if against_latency is not None:
        drawings["latency"] = lambda: against_latency
    return drawings


def page_of(outcome: Outcome) -> data.Page:
    """Build the page data of an outcome: every data set with its systems, gates, times and versions."""
    sure = outcome.experiment.hide.sure
    axis = standings.shared_axis((each, _gates_on(outcome, name)) for name, each in outcome.systems.items())
    shown, made = [gate for gate in outcome.gates if gate.dataset in outcome.systems], decisions(outcome)
    datasets: list[Any] = []
    for name in (name for name in made if name in outcome.systems):
        parts = _dataset(outcome, name, axis).items()
        datasets.append({key: value if key in MEASURED else sure(value) for key, value in parts})
    whole = overall(made, outcome.gates) if len(made) > 1 else None
    return {
        "title": outcome.experiment.title,
        "datasets": datasets,
        "facts": [
            ("groupgt", groupgt.__version__),
            ("python", platform.python_version()),
            ("seed", str(outcome.experiment.config.seed)),
            *((name, f"SHA-256 {digest}") for name, digest in outcome.digests.items()),
        ],
        "across": typeset(across.verdict_of(outcome)),
        "overall": whole and (whole[0].badge, whole[0].sentence, whole[1]),
        "gates_title": gates.page_title(shown, outcome.experiment.config.baseline),
        "times": sure(_times(outcome)),
    }


def _times(outcome: Outcome) -> data.Times:
    latencies = {name: times.figure(each, times.latencies(outcome, name)) for name, each in outcome.systems.items()}
    return {
        "made": datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": times.machine_text(outcome.timings),
        "columns": list(times.columns(outcome)),
        "systems": {name: times.page_rows(outcome, name) for name in outcome.systems},
        "gates": {name: gates.page_rows(outcome, name, timed=True) for name in outcome.systems},
        "drawings": {name: {"latency": drawing(each)} if each else {} for name, each in latencies.items()},
        "verdict": {name: list(_on_time(outcome, name)) for name in outcome.systems},
    }


def _dataset(outcome: Outcome, name: str, axis: Axis | None) -> data.Dataset:
    """Return a data set's page data, plus the experiment's additions, such as its decision, gates and stages."""
    systems, decision, judged = outcome.systems[name], decisions(outcome)[name], _gates_on(outcome, name)
    staged = {f"stages {system}": stages.plot() for system, stages in outcome.stages.get(name, {}).items()}
    added = Added(
        decision=decision,
        population=headline(outcome, name).split(" · ", 2)[-1],
        notes=typeset(notes(outcome, name, decision, timed=False)),
        about={system: _about(outcome, system) for system in systems.names},
        judged=judged,
        gates=gates.page_rows(outcome, name, timed=False),
        gates_title=gates.page_title(judged, outcome.experiment.config.baseline),
        axis=axis,
        against=outcome.against.get(name),
        previous=previous.page_part(outcome, name),
        outcomes=outcomes.page_part(outcome.answered.get(name, {}), decision.system),
        figures={**curves.sweeps(outcome, systems), **staged},
    )
    return page.dataset_of(systems, name, added)


def _about(outcome: Outcome, system: str) -> str:
    """Return a system's retriever, inputs and options as written in the file."""
    resolved = outcome.experiment.systems[system]
    options = outcome.experiment.shown_options(system)
    plain = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in options.items()}
    listed = ", ".join(f"{key}={value}" for key, value in plain.items() if value != "null")
    inputs = f" of {', '.join(resolved.inputs)}" if resolved.inputs else ""
    return f"{resolved.config.use}{inputs}" + (f": {listed}" if listed else "")
