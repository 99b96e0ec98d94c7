"""Report how each system compares with its version in the previous run, as sentences, tables, page data and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from groupgt.comparison.systems import finite
from groupgt.experiment.experiment import Experiment
from groupgt.experiment.outcome import Against, Outcome
from groupgt.experiment.previous import Previous
from groupgt.render.columns import jsonable
from groupgt.render.document import Detail, Item, typeset
from groupgt.render.page import data
from groupgt.render.tables import DIGITS, count_text, counted, fixed, minus, shortlist, small, span
from groupgt.report.contrasts import beside_grid, beside_rows, delta_text, p_header
from groupgt.report.differences import Other, changes, too_few
from groupgt.report.sentences import at_cutoff, grouped, sentence_of, warning

# Maximum number of queries named in a cell.
NAMED = 10
# Names the first queries or systems in a line.
_some = partial(shortlist, most=10, more=", and {:,} more")
OTHER = Other("than in the previous run", "the previous run")


def will_compare(previous: Previous, experiment: Experiment) -> str:
    """Describe in one line the run that a comparison would use."""
    if not previous.name:
        return "no previous run to compare with, so groupgt skips gates that need one"
    parts = []
    for dataset in experiment.config.datasets:
        former = previous.datasets.get(dataset)
        then = list(former.systems) if former is not None else []
        now = [name for served, name in experiment.pairs() if served == dataset]
        parts.append(f"{dataset}: {_some([name for name in now if name in then] or ['no system'])}")
        gone = [name for name in then if name not in experiment.systems]
        parts += _others([name for name in now if name not in then], gone)
    return f"compared with the previous run {previous.name}: {'; '.join(parts)}"


def _others(added: Sequence[str], gone: Sequence[str]) -> Iterator[str]:
    if added:
        yield f"not in the previous run: {_some(added)}"
    if gone:
        yield f"only in the previous run: {_some(gone)}"


def sentences(outcome: Outcome, dataset: str) -> Iterator[data.Sentence]:
    """Describe changes in the primary metric since the previous run, and systems that cannot be compared."""
    if outcome.previous == "":
        yield sentence_of("note", "No previous run to compare with.")
    against = outcome.against.get(dataset)
    if against is None:
        return
    label = _label(outcome, against)
    yield from changes(against.contrasts(), OTHER, label, against.settings)
    yield from map(warning, too_few(against.contrasts(), label, against.settings))
    for why, names in _by_reason(against, against.refused):
        yield warning(f"groupgt did not compare {_some(names)} with the previous run in {label}, because {why}")


def _by_reason(against: Against, reasons: Mapping[tuple[str, str], str]) -> Iterable[tuple[str, list[str]]]:
    return grouped((why, name) for (name, text), why in reasons.items() if text == against.primary).items()


def _label(outcome: Outcome, against: Against) -> str:
    return against.metrics[against.primary].label(against.primary, outcome.experiment.convention)


def blocks(outcome: Outcome, dataset: str) -> Iterator[Item]:
    """Compare every system with its previous version on the primary metric, over queries evaluated in both runs."""
    against = outcome.against.get(dataset)
    if against is None:
        return
    if against.contrasts():
        headers = ["against the previous run", "queries", f"{_label(outcome, against)} before", "now"]
        yield beside_grid(against, against.primary, headers)
    yield from changed_queries(outcome, against)
    if notes := list(_notes(against)):
        yield "\n".join(notes)
    yield Detail(f"previous run: {outcome.previous}")


def changed_queries(outcome: Outcome, against: Against) -> Iterator[Item]:
    """List, for each system, the queries that are complete only in the previous run, or only in this one."""
    rows = []
    for name in against.lost:
        both = (against.lost[name], against.gained[name])
        if any(both):
            counts = zip(map(count_text, against.counts[name]), both)
            rows.append([name, *(f"{count}: {shortlist(qids, NAMED)}" if qids else "none" for count, qids in counts)])
    if rows:
        cutoff = at_cutoff(against.metrics[against.primary].cutoff)
        yield ["since the previous run", "queries lost", "queries gained"], rows
        often = "in more trials of the previous run than of this one"
        has_trials = any(each.repeats for each in against.again.values())
        what = often if has_trials else "in the previous run and not in this one"
        yield f"Lost queries are complete{cutoff} {what}. Gained queries are the reverse."


def _notes(against: Against) -> Iterator[str]:
    """Note queries and systems that occur in only one run, changed ground truth, and any use of stored values."""
    if others := list(_others(against.added, against.gone)):
        yield "; ".join(others)
    if against.changed:
        count = counted(len(against.changed), "query has", "queries have")
        yield f"{count} changed ground truth. groupgt uses the current version for both runs: {_some(against.changed)}"
    if against.reworded:
        yield f"excluded because their text has changed: {_some(against.reworded)}"
    alone = [(against.queries_only_now, "new"), (against.queries_only_then, "no longer queried")]
    if any(count for count, _ in alone):
        yield "excluded: " + ", ".join(f"{counted(n, 'query')} {what}" for n, what in alone if n)
    for why, names in _by_reason(against, against.stored):
        left = ", except for queries with changed ground truth" if against.changed else ""
        yield f"groupgt uses stored values for {_some(names)}{left}: {why}"


def page_part(outcome: Outcome, dataset: str) -> data.Previous | None:
    """Return each system next to its previous version for the page, as text, or None without a previous run."""
    against = outcome.against.get(dataset)
    if against is None:
        return None
    rows: dict[str, list[list[str]]] = {}
    for name, text, then, now, each in beside_rows(against):
        metric = against.metrics[text].label(text, outcome.experiment.convention)
        means = [metric, f"{each.pairs:,}", fixed(then, DIGITS), fixed(now, DIGITS)]
        change = map(minus, (delta_text(each), span(each.delta_interval, DIGITS)))
        rows.setdefault(name, []).append([*means, *change, small(each.p_value, DIGITS)])
    contrasts, label = against.contrasts(), _label(outcome, against)
    systems: list[data.Former] = []
    for name, cells in rows.items():
        alone = {name: contrasts[name]} if name in contrasts else {}
        lost, gained = against.lost.get(name, []), against.gained.get(name, [])
        systems.append(
            {
                "name": name,
                "rows": cells,
                "verdict": typeset(changes(alone, OTHER, label, against.settings)),
                "lost": list(lost[:NAMED]),
                "more_lost": max(len(lost) - NAMED, 0),
                "gained": list(gained[:NAMED]),
                "more_gained": max(len(gained) - NAMED, 0),
            }
        )
    heads = ["metric", "queries", "before", "now", "delta", "CI", p_header(against.settings)]
    return {"run": outcome.previous or "", "heads": heads, "systems": systems, "notes": list(_notes(against))}


def results(outcome: Outcome, dataset: str) -> dict[str, Any]:
    """Build the section of results.json that compares a data set with the previous run."""
    against = outcome.against[dataset]
    rows: list[dict[str, Any]] = []
    for name, text, then, now, each in beside_rows(against):
        row = {"system": name, "metric": text, "before": finite(then), "now": finite(now)}
        row |= {"measured_again": (name, text) not in against.stored}
        rows.append(row | {"significant": each.significant, "against": jsonable(each)})
    return {
        "run": outcome.previous or "",
        "rows": rows,
        "refused": [{"system": name, "metric": text, "why": why} for (name, text), why in against.refused.items()],
        "lost_queries": {name: list(qids) for name, qids in against.lost.items()},
        "gained_queries": {name: list(qids) for name, qids in against.gained.items()},
        "added": list(against.added),
        "gone": list(against.gone),
        "changed_queries": list(against.changed),
        "reworded_queries": list(against.reworded),
        "new_queries": against.queries_only_now,
        "gone_queries": against.queries_only_then,
    }
