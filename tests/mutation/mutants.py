"""Mutants of a module: every small change of its syntax tree that a test should notice, one at a time."""

from __future__ import annotations

import ast
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}


# The way to a node from the root: fields, and places in them.
Steps = tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Mutant:
    """One changed module: where, what its text was and became, and its tree.

    `name` says the function, the expression before and after, and which of several alike it is: it stays where lines
    above are added. `lines` are those of the statement up to the end of the change: to reach one is to reach it. The
    tree is made when it is asked for, of the original's, pickled: thousands of trees would fill the memory.
    """

    name: str
    line: int
    lines: range
    original: bytes
    steps: Steps
    change: int

    @property
    def tree(self) -> ast.Module:
        """The tree of the changed module."""
        changed: ast.Module = pickle.loads(self.original)
        _change(changed, _at(changed, self.steps), self.steps, self.change)
        return ast.fix_missing_locations(changed)


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    original = pickle.dumps(tree)
    seen: Counter[str] = Counter()
    for steps, owner in _places(tree, (), "module"):
        for change in range(9):
            changed = pickle.loads(original)
            node = _at(changed, steps)
            before, line = _text(node), node.lineno
            lines = range(_statement(changed, steps).lineno, (_end(node) or line) + 1)
            after = _change(changed, node, steps, change)
            if after is None:
                break
            name = f"{owner}: {before} → {after}"
            seen[name] += 1
            if seen[name] > 1:
                name += f" ({seen[name]})"
            yield Mutant(name, line, lines, original, steps, change)


def _places(node: ast.AST, steps: Steps, owner: str) -> Iterator[tuple[Steps, str]]:
    """The nodes that can be changed, as ways from the root; annotations, docstrings and imports cannot."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        owner = node.name if owner == "module" else f"{owner}.{node.name}"
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        children = value if isinstance(value, list) else [value]
        for place, child in enumerate(children):
            if not isinstance(child, ast.AST) or isinstance(child, (ast.Import, ast.ImportFrom)) or _is_text(child):
                continue
            way = (*steps, (field, place if isinstance(value, list) else None))
            if _changes(child):
                yield way, owner
            yield from _places(child, way, owner)


def _is_text(node: ast.AST) -> bool:
    """A docstring or a message: tests do not read every word."""
    return (
        (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    )


def _changes(node: ast.AST) -> int:
    """In how many ways a node is changed."""
    if isinstance(node, ast.Compare):
        return len(node.ops) + len(_texts(node))
    if isinstance(node, ast.BoolOp):
        return 1 + len(node.values)
    if isinstance(node, ast.Constant):
        return int(isinstance(node.value, (int, float)))
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.UnaryOp)):
        return 1
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        return int(type(node.op) in OPERATORS)
    return int(isinstance(node, (ast.Expr, ast.Continue, ast.Break)))


def _texts(node: ast.Compare) -> list[Any]:
    """The texts that something is compared with."""
    return [each for each in node.comparators if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _at(tree: ast.AST, steps: Steps) -> ast.AST:
    node = tree
    for field, place in steps:
        value = getattr(node, field)
        node = value if place is None else value[place]
    return node


def _statement(tree: ast.AST, steps: Steps) -> ast.stmt:
    """The innermost statement around a node."""
    around = (_at(tree, steps[:length]) for length in range(len(steps), 0, -1))
    return next(node for node in around if isinstance(node, ast.stmt))


def _end(node: ast.AST) -> int | None:
    """The last line of a node; of the head alone, where a statement has a body."""
    return _end(node.test) if isinstance(node, (ast.If, ast.While)) else getattr(node, "end_lineno", None)


def _replace(tree: ast.AST, steps: Steps, new: ast.AST) -> None:
    owner, (field, place) = _at(tree, steps[:-1]), steps[-1]
    if place is None:
        setattr(owner, field, new)
    else:
        getattr(owner, field)[place] = new


def _change(tree: ast.Module, node: ast.AST, steps: Steps, change: int) -> str | None:
    """Makes the change of that number, and says what the node became; None where there is none."""
    if change >= _changes(node):
        return None
    new: ast.AST = node
    if isinstance(node, ast.Compare):
        if change < len(node.ops):
            node.ops[change] = COMPARISONS[type(node.ops[change])]()
        else:
            _texts(node)[change - len(node.ops)].value += "?"
    elif isinstance(node, ast.BoolOp):
        if change == 0:
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        else:
            node.values.pop(change - 1)
            new = node if len(node.values) > 1 else node.values[0]
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.UnaryOp):
        new = node.operand
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.Expr):
        new = ast.Pass()
    elif isinstance(node, (ast.Continue, ast.Break)):
        new = ast.Break() if isinstance(node, ast.Continue) else ast.Continue()
    if new is not node:
        ast.copy_location(new, node)
        _replace(tree, steps, new)
    return _text(new)


def _text(node: ast.AST) -> str:
    """The expression, or the head of the statement."""
    if isinstance(node, (ast.If, ast.While)):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return ast.unparse(node)
