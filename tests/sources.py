"""The modules of the package as syntax trees, parsed once in each process of the tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """The tree of a file; tests must not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))
