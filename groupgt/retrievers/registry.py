"""Every retriever by the name that `use:` gives it. A new one is a file of its own and a line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from groupgt.retrievers import bm25, stored
from groupgt.retrievers.base import Corpus, Retriever

__all__ = ["RETRIEVERS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """How a system is made: its options, and what builds it over a corpus; None where results are read from files.

    `library` is the package whose version goes into the manifest.
    """

    options: type[Any]
    build: Callable[[Corpus, Any], Retriever] | None
    library: str | None = None


RETRIEVERS: dict[str, Kind] = {
    "bm25": Kind(bm25.Options, bm25.BM25, "bm25s"),
    "results": Kind(stored.Options, None),
}
