"""Report which queries each system completes, which queries no system completes, and the score of an oracle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from groupgt.comparison.headroom import Headroom
from groupgt.comparison.systems import Systems
from groupgt.render.document import Block, Detail, Item
from groupgt.render.tables import DIGITS, count_text, fixed, part_of, shortlist

# More queries than this are only counted, not named.
LISTED = 5


def blocks(systems: Systems, metrics: Sequence[str]) -> Iterator[Item]:
    """Yield how many queries each system completes, how many only this system completes, and the headroom by metric."""
    failures = systems.failures
    if failures is None or len(failures.systems) < 2:
        return
    queries = failures.queries
    if not any(queries.values()):
        yield "no queries to evaluate"
        return
    within = f"@{failures.cutoff}" if failures.cutoff is not None else "in the whole ranking"
    rows: list[list[Any]] = []
    for name, complete in failures.solved_counts.items():
        against = failures.between(name, systems.baseline)
        gained, lost = (count_text(against[side]) for side in ("only_first", "only_second"))
        changes = ["", ""] if name == systems.baseline else [gained, lost]
        of = f"/{queries[name]:,}" if failures.populations_differ else ""
        rows.append([name, f"{count_text(complete)}{of}", len(failures.only(name)), *changes])
    yield [f"complete {within}", "queries", "only this run", "gained over baseline", "lost to baseline"], rows
    count = int(failures.counted.sum())
    nobody = failures.nobody
    among = " (of the queries that count for every run)" if failures.populations_differ else ""
    line = f"{part_of(failures.every_count, count, 'query')} complete in every run"
    line += f", {count_text(failures.none_count)} in none{among}"
    which = "; in no trial: " if max(failures.trials) > 1 else ": "
    yield Detail(f"{line}{which}{shortlist(nobody, LISTED, ' …')}" if nobody else line)
    yield from map(Detail, _headroom(systems, metrics, within.replace("@", "in the top ")))


def _headroom(systems: Systems, metrics: Sequence[str], within: str) -> Iterator[Block]:
    chosen = [each for each in systems.headroom if each.metric in metrics]
    if not chosen:
        return
    headers = ["headroom", "best system", "mean", "best run per query", "maximum gain", "queries"]
    yield headers, _rows(systems, chosen)
    union = chosen[0]
    size = alone = ""
    if not math.isnan(union.union_size):
        size = f" ({fixed(union.union_size, 1)} distinct results per query)"
        depth = max(math.ceil(union.union_size), 1)
        alone = f". The best single system has a recall.coverage@{depth} of {fixed(union.single_recall, DIGITS)}"
    yield (
        f"the union of all results {within}{size} reaches a recall.coverage of {fixed(union.union_recall, DIGITS)} "
        f"and a complete.coverage of {fixed(union.union_complete, DIGITS)}{alone}\n"
        "headroom is an upper bound that grows by chance with the number of systems"
    )


def page_rows(systems: Systems) -> list[list[str]]:
    """Return, for each metric, the best system, its mean, the oracle's mean, the difference in means, and n."""
    return _rows(systems, systems.headroom)


def _rows(systems: Systems, chosen: Sequence[Headroom]) -> list[list[str]]:
    rows = []
    for each in chosen:
        means = (fixed(mean, DIGITS) for mean in (each.mean, each.per_query, abs(each.per_query - each.mean)))
        rows.append([systems.labels[each.metric], each.best, *means, f"{each.queries:,}"])
    return rows
