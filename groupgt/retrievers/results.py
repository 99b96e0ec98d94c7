"""Results of any other system, from files."""

from __future__ import annotations

from dataclasses import dataclass, field

from groupgt.retrievers import base


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: results`.

    `path` names the results, `{dataset}` in it stands for the dataset's name; `format` is recognized where it is not
    given.
    """

    path: str = field(metadata={"path": True})
    format: str | None = None

    def searches_texts(self) -> bool:
        return False
