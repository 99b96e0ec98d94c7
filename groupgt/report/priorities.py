"""Choose the queries to look at first: queries lost by a decision's system, then queries that no system completes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from groupgt.comparison.systems import Systems
from groupgt.evaluation.misses import Failures, Place, PlacedGroup, failures_of
from groupgt.experiment.outcome import Against
from groupgt.metrics import views
from groupgt.render.document import Folded, Foot
from groupgt.render.layout import Strong
from groupgt.render.page import data
from groupgt.render.tables import DIGITS, Table, counted, fixed, snippet
from groupgt.report.decision import Decision
from groupgt.report.names import Names
from groupgt.report.sentences import at_cutoff, grouped

# Queries, groups named for each, and characters of a passage that name an alternative.
QUERIES, GROUPS, NAME_CHARS = 3, 3, 60
# Characters of a query in a summary.
TEXT_CHARS = 200


def first_queries(
    systems: Systems, decision: Decision, against: Against | None = None
) -> tuple[list[str], list[data.FirstQuery]]:
    """Return up to three queries with reasons: first those the system loses most, then those no system completes."""
    failures = systems.failures
    if failures is None:
        return [], []
    names, baseline = Names(systems.names), systems.baseline
    subject = decision.system if decision.system in systems.names else None
    places = {qid: place for place, qid in enumerate(failures.truth.qids)}
    values = {name: systems.values[name][systems.primary] for name in systems.names}
    lost: Sequence[str] = ()
    before, since, there, than = values.get(baseline), "", failures, baseline
    if subject not in (None, baseline) and before is not None and systems.is_baseline_named:
        lost = failures.lost(subject, baseline)
        since = f" against {names[baseline]}" if decision.is_since_previous else ""
    earlier = against.lost.get(subject or "", ()) if against is not None else ()
    if against is not None and subject is not None and earlier and (decision.is_since_previous or not lost):
        lost, before, since = earlier, against.before[subject][against.primary], " since the previous run"
        there, than = failures_of({subject: against.again[subject]}, systems.cutoff), subject
    if subject is not None and before is not None:
        fall = (1 if systems.higher else -1) * (before - values[subject])
        lost = sorted(lost, key=lambda qid: -np.nan_to_num(fall[places[qid]]))
    deepest = sorted(failures.nobody, key=lambda qid: -_best_rank(failures, places[qid]))
    chosen = list(dict.fromkeys([*lost, *deepest]))[:QUERIES]
    count = len(systems.names)
    found: list[data.FirstQuery] = []
    for qid in chosen:
        at, is_lost = places[qid], qid in lost
        became = "not complete" if count == 1 else f"complete in 0 of {count:,}"
        if is_lost and subject is not None and before is not None:
            became = f"{fixed(before[at], DIGITS)} → {fixed(values[subject][at], DIGITS)}"
        formers = [group.places[than] for group in there.groups_of(there.truth.index[qid])] if is_lost else []
        missing = list(_missing(systems, failures.groups_of(at), subject if is_lost else None, formers))[:GROUPS]
        text = failures.text_of(qid) or ""
        found.append({"qid": qid, "text": text, "lost": is_lost, "became": became, "missing": missing})
    of_lost = "" if subject is None else f"lost by {names[subject]}{since}"
    incomplete = f"groups missing{at_cutoff(systems.cutoff)}" if count == 1 else "complete in no system"
    return [of_lost if qid in lost else incomplete for qid in chosen], found


def _why(reasons: Sequence[str]) -> str:
    """Return the reasons as text, with the number of queries for each if there are several."""
    counts = {why: reasons.count(why) for why in reasons}
    return ", then ".join(f"{count} {why}" if len(counts) > 1 else why for why, count in counts.items())


def _best_rank(failures: Failures, query: int) -> float:
    """Return the best rank of a query's deepest group, or infinity if a group is never retrieved."""
    ranks = failures.anywhere[views.part_of(failures.truth.judgments.group_query, query)]
    best = np.where(ranks > 0, ranks, math.inf).min(axis=1, initial=math.inf)
    return float(best.max(initial=0.0))


def _missing(
    systems: Systems, groups: Sequence[PlacedGroup], subject: str | None, formers: Sequence[Place]
) -> Iterator[tuple[str, str]]:
    """Yield the groups that `subject` (or, if None, every system) misses, with their ranks now and in `formers`."""
    count = len(systems.names)
    for at, group in enumerate(groups):
        if subject is not None:
            place = group.places[subject]
            if place.is_covered:
                continue
            where = _where(place, formers[at])
        else:
            if any(place.is_covered for place in group.places.values()):
                continue
            ranks = [place.rank for place in group.places.values() if place.rank]
            nowhere = "not retrieved by any system" if count > 1 else "not retrieved"
            of = f", of {count:,} systems" if count > 1 else ""
            where = f"best rank {min(ranks):,}{of}" if ranks else nowhere
        some, more = group.alternatives[:2], " or …" if len(group.alternatives) > 2 else ""
        label = "" if systems.failures is None or systems.failures.truth.shape == "flat" else f"{group.group}: "
        yield label + " or ".join(_named(systems, name) for name in some) + more, where


def _where(place: Place, former: Place | None) -> str:
    """Describe where a system covers a group, and where it did before."""
    if place.trials > 1:
        was = "" if former is None else f", was {former.covered:,} of {former.trials:,}"
        return f"covered in {place.covered:,} of {place.trials:,} trials{was}"
    was = "" if former is None or not former.rank else f", was {former.rank:,}"
    return (f"rank {place.rank:,}" if place.rank else "not retrieved") + was


def _named(systems: Systems, name: str) -> str:
    """Return the beginning of a passage in quotes, or its id if the text is unknown."""
    text = systems.passages.get(name, "").strip().partition("\n")[0]
    return f"“{snippet(text, NAME_CHARS)}”" if text else name


def foot(systems: Systems, decision: Decision, against: Against | None = None) -> Foot:
    """Return the last line of a text: the queries to look at first."""
    reasons, found = first_queries(systems, decision, against)
    # Ids with blanks, such as texts that are ids, need quotes.
    names = [f"“{snippet(each['qid'], NAME_CHARS)}”" if " " in each["qid"] else each["qid"] for each in found]
    parts = [
        f"{' '.join(['query' if len(of) == 1 else 'queries', *of])} ({why})"
        for why, of in grouped(zip(reasons, names)).items()
    ]
    return Foot(f"look first at {', then '.join(parts)}" if parts else "")


def folded(systems: Systems, decision: Decision, against: Against | None = None) -> Iterator[Folded]:
    """Yield the queries to look at first, for a summary."""
    reasons, found = first_queries(systems, decision, against)
    rows = []
    for each in found:
        lacks = "; ".join(f"{names}, {where}" for names, where in each["missing"])
        rows.append([Strong(each["qid"]), each["became"], snippet(each["text"], TEXT_CHARS), lacks])
    if rows:
        these = "this query" if len(rows) == 1 else f"these {len(rows)} queries"
        table = Table(["Query", systems.label, "Text", "Missing"], rows, keep=4)
        yield Folded(f"Look at {these} first ({_why(reasons)})", [table])


def page_part(systems: Systems, decision: Decision, against: Against | None = None) -> data.First:
    """Return the queries to look at first, for the page."""
    reasons, found = first_queries(systems, decision, against)
    why = f"{_why(reasons)[0].upper()}{_why(reasons)[1:]}." if reasons else ""
    return {"why": why, "queries": found, "all": f"All {counted(len(systems.qids), 'query')}"}
