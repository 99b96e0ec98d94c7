"""Report pool bias: who depends on their own judgments, and which unjudged results to judge next."""

from __future__ import annotations

from typing import Any

from groupgt.comparison.pool import Pool
from groupgt.render.document import Item, Verdict
from groupgt.render.page.data import Sentence
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, Table, counted, shortlist, signed
from groupgt.report.sentences import sentence_of

COLUMNS = ("system", "team", "judged", "value", "without", "change", "unique", "relevant", "dropped", "undefined")


class PoolTeller(Teller[Pool]):
    """Report each system with and without the judgments that only its team contributed."""

    fields = ("metric", "depth", "cutoff", "queue", "unjudged", "queries")

    def blocks(self) -> list[Item]:
        """Return a sentence, one row per system, the queue of unjudged results, and how they were made."""
        result = self.result
        has_teams = any(each.team != each.system for each in result.systems)
        headers = ["run", *(["team"] if has_teams else []), f"judged@{result.cutoff}", result.metric, "without own"]
        drops = any(each.dropped for each in result.systems)
        headers += ["change", "own judgments", "relevant", *(["groups dropped"] if drops else []), "swaps"]
        rows: list[list[Any]] = []
        for each in result.systems:
            team = [each.team] if has_teams else []
            counts = [each.unique, each.relevant, *([each.dropped] if drops else []), len(each.swaps)]
            rows.append([each.system, *team, each.judged, each.value, each.without, signed(each.change), *counts])
        items: list[Item] = [Verdict([self._sentence()])]
        items.append(Table(headers, rows, ("relevant", *(["groups dropped"] if drops else [])), 1 + has_teams))
        if result.queue:
            queue = [[each.qid, each.doc_id, each.spread, shortlist(each.systems, 3)] for each in result.queue[:10]]
            items.append((["query", "unjudged result", "spread", "returned by"], queue))
        return [*items, "\n".join(self._notes())]

    def _sentence(self) -> Sentence:
        result = self.result
        lowest = min(result.systems, key=lambda each: each.change)
        swaps = sum(len(each.swaps) for each in result.systems)
        if not any(each.unique for each in result.systems):
            return sentence_of("same", "No judgment is unique to a team.")
        order = f"{counted(swaps, 'pair')} of systems {'swaps' if swaps == 1 else 'swap'}" if swaps else "No pair swaps"
        rest = f" changes most without its own judgments: {signed(lowest.change)} in {result.metric}. {order}."
        return sentence_of("same", "", lowest.system, rest)

    def _notes(self) -> list[str]:
        result = self.result
        lines = [
            f"own judgments: of documents that no other team has in its first {result.depth:,} results. Without them, "
            "all systems are evaluated again",
            f"{counted(result.unjudged, 'unjudged result')} in the top {result.cutoff}, "
            f"{counted(result.queries, 'query')}. Spread: how far its relevance could move two systems apart, as "
            "1/log2(rank + 1). Judge them with groupgt judge --next comparison",
        ]
        if lost := max(each.undefined for each in result.systems):
            lines.append(f"up to {counted(lost, 'query')} lose all relevant documents and are left out on both sides")
        if not result.nonrelevant:
            lines.append("the ground truth has no documents judged non-relevant, so judged@k counts relevant ones only")
        return lines

    def csv_rows(self) -> Grid:
        """Return headers and one row per system."""
        rows = [[*(getattr(each, name) for name in COLUMNS), len(each.swaps)] for each in self.result.systems]
        return [*COLUMNS, "swaps"], rows

    def to_dict(self) -> Any:
        """Return everything as plain Python."""
        systems = [
            {**{name: getattr(each, name) for name in COLUMNS}, "swaps": list(each.swaps)}
            for each in self.result.systems
        ]
        return {**super().to_dict(), "systems": systems}
