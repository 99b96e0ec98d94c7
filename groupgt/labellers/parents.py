"""The parents labeller compares only the parent documents of chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from groupgt.errors import display, refuse
from groupgt.labellers.base import Cached, Table, all_ids, query_of
from groupgt.labellers.ids import Named
from groupgt.model.ground_truth import GroundTruth
from groupgt.options import Clash, Doc
from groupgt.plugins import Plugin


@dataclass(frozen=True)
class Options:
    """Source of parents: a `mapping`, a `pattern`, or (by default) the `parent` field of results."""

    mapping: Annotated[Table, Doc("Table of ids and their parents.")] = ""
    column: Annotated[str, Doc("Column of `mapping` that contains the parents.")] = "parent"
    pattern: Annotated[
        str, Doc("Regular expression that matches a whole id and whose first group is the parent, such as (.*)#[0-9]+.")
    ] = ""

    @property
    def maps(self) -> bool:
        """True if there is a mapping, even an empty one."""
        return not isinstance(self.mapping, str) or bool(self.mapping)

    def clashes(self) -> Iterator[Clash]:
        """Yield errors if both a mapping and a pattern are set, or if the pattern does not capture a parent."""
        if self.maps and self.pattern:
            yield Clash("pattern", "conflicts with mapping; keep one", ("mapping",))
        if not self.maps and self.column != "parent":
            yield Clash("column", "names a column of a mapping, but no mapping is given", ("mapping",))
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            yield Clash("pattern", f"expected a regular expression, found {self.pattern!r}: {error}")
            return
        if self.pattern and not groups:
            what = "expected a regular expression whose first group is the parent, such as (.*)#[0-9]+"
            yield Clash("pattern", f"{what}, found {self.pattern!r}")


class Parents(Named):
    """A result hits the alternatives with the same parent id. Later chunks with the same parent are repeats.

    An id counts as its own parent if the pattern does not match it, or if the mapping lists it only as a parent.
    """

    name = "parents"
    described = frozenset({"pattern"})

    def __init__(self, options: Options, inputs: Any) -> None:
        self.options = options
        self.pattern = re.compile(options.pattern) if options.pattern else None
        self.mapping: dict[str, str] | None = inputs.parents(options.mapping, options.column) if options.maps else None
        self.column = "" if options.maps or options.pattern else "parent"
        self.parents = frozenset(self.mapping.values() if self.mapping is not None else ())
        self.parent_of = Cached(self._match_parent, self.mapping or {})

    @property
    def renames(self) -> bool:
        """Always True, because results get the names of their parents."""
        return True

    def unknown_ids(self, ids: Sequence[str]) -> list[str]:
        """Return the results that are not in the mapping or do not match the pattern."""
        if self.pattern is not None:
            return [name for name in ids if self.pattern.fullmatch(name) is None]
        if self.mapping is None:
            return []
        return [name for name in ids if name not in self.mapping and name not in self.parents]

    @property
    def unknown_is_fault(self) -> bool:
        """False with a pattern, because an id that does not match the pattern may be a parent."""
        return self.pattern is None

    def names(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the parent of each id."""
        return ids if self.column else list(map(self.parent_of.__getitem__, ids))

    def _match_parent(self, name: str) -> str:
        match = self.pattern.fullmatch(name) if self.pattern is not None else None
        return (match and match[1]) or name

    def truth(self, truth: GroundTruth) -> GroundTruth:
        """Return groups of parents, or raise `DataError` for alternatives that are not in the mapping."""
        all_ids(truth, self.name)
        if self.mapping is not None:
            unknown = set(self.unknown_ids(truth.ids))
            what = "expected the id of a chunk or a parent in the mapping, found"
            refuse(
                (query_of(truth, alternative), f"{what} {display(name)}")
                for alternative, name in enumerate(truth.ids)
                if name in unknown
            )
        return truth.renamed(list(self.names(truth.ids)))

    def description(self) -> str:
        """Describe the source of parents."""
        if self.options.pattern:
            return f"pattern {self.options.pattern}"
        return "a mapping" if self.options.maps else "from the results"


PLUGIN = Plugin(Options, Parents)
