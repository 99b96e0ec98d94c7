"""Existing results from any system, read from files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from typing_extensions import Doc

from groupgt.options import File
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: results`."""

    path: Annotated[File, Doc("The results; {dataset} is replaced by the name of the data set.")]
    format: Annotated[str | None, Doc("Format of the results (default: auto-detect).")] = None

    def searches_texts(self) -> bool:
        return False


PLUGIN = RetrieverPlugin(Options, summary="Existing results of any system, read from files.", corpus=False)
