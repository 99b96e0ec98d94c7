"""Results of any other system, from files."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """The options of `use: results`: a path, in which `{dataset}` stands for the dataset's name, and its format."""

    path: str
    format: str | None = None

    def at(self, dataset: str) -> str:
        """The path for one dataset."""
        return self.path.replace("{dataset}", dataset)
