"""Report the settings that reproduce a number, and how many would match by chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from groupgt.evaluation.identify import Identified, Setting
from groupgt.render.document import Detail, Item, Verdict
from groupgt.render.page.data import Sentence
from groupgt.render.results import Teller
from groupgt.render.tables import Grid, counted
from groupgt.report.sentences import sentence_of, warning

SHOWN = 10
HEADERS = ["metric", "policy", "mean over", "value", "queries"]


class IdentifiedTeller(Teller[Identified]):
    """Report the settings that reproduce a number, most common first."""

    fields = ("number", "low", "high", "tried", "chance", "matches", "nearest")

    def blocks(self) -> list[Item]:
        """Return explanations of the number, a row for each matching setting, and the nearest settings."""
        result = self.result
        items: list[Item] = [Verdict(list(self._sentences()))]
        if result.matches:
            items.append((["gives it", *HEADERS[1:]], [_cells(each) for each in result.matches[:SHOWN]]))
        if len(result.matches) > SHOWN:
            items.append(f"{len(result.matches) - SHOWN:,} more match")
        nearest = (["nearest to it", *HEADERS[1:]], [_cells(each) for each in result.nearest])
        # A single match would look like the answer.
        items.append(nearest if len(result.matches) < 2 else Detail(nearest))
        same = [f"{each.metric}: the same values as {', '.join(each.also[:5])}" for each in result.matches if each.also]
        return [*items, *([Detail("\n".join(same[:SHOWN]))] if same else [])]

    def _sentences(self) -> Iterator[Sentence]:
        result = self.result
        tried = f"{counted(result.tried, 'setting')} with distinct values"
        chance = f"Chance alone gives about {result.chance:.1f} matches"
        if not result.matches:
            yield warning(f"No setting gives {result.number} ({tried} tried)")
            return
        first, *others = result.matches
        others_do = f"so {'does' if len(others) == 1 else 'do'} {counted(len(others), 'other setting')} of {tried}"
        rest = others_do if others else f"no other of {tried} does"
        yield sentence_of("same", "", first.metric, f" gives {result.number} on this data, and {rest}. {chance}.")

    def csv_rows(self) -> Grid:
        """Return headers and one row per matching setting, followed by the nearest settings."""
        rows = [
            [int(gives), each.metric, each.policy, each.over, each.value, each.queries]
            for gives, settings in ((True, self.result.matches), (False, self.result.nearest))
            for each in settings
        ]
        return ["gives_it", *(header.replace(" ", "_") for header in HEADERS)], rows


def _cells(setting: Setting) -> list[Any]:
    return [setting.metric, setting.policy or "default", setting.over, setting.value, setting.queries]
