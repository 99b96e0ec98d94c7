"""Results of any other system, from files."""

from __future__ import annotations

from dataclasses import dataclass

from groupgt.options import File
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: results`.

    `path` names the results, `{dataset}` in it stands for the dataset's name; `format` is recognized where it is not
    given.
    """

    path: File
    format: str | None = None

    def searches_texts(self) -> bool:
        return False


PLUGIN = RetrieverPlugin(Options, summary="Results of any other system, from files.", corpus=False)
