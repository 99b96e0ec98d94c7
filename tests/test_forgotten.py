"""Nothing that is added to the package can be left unconnected: modules, functions, commands, keys of files."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import groupgt
from groupgt.cli.help import EXAMPLES
from groupgt.cli.main import COMMANDS
from groupgt.evaluation.options import EvaluateOptions
from groupgt.options import options_of
from groupgt.report.page import Added
from groupgt.report.tellers import TELLERS
from tests.sources import tree_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PACKAGE = Path(groupgt.__file__).parent
TREES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): tree_of(path)
    for path in sorted(PACKAGE.rglob("*.py"))
}
# What Python, pytest, click, PyYAML, IPython or a file object calls by name.
CALLED_BY_NAME = re.compile(
    r"__\w+__|_repr_\w+_|pytest_\w+|\w+_command|list_commands|get_command|get_help_option_names|format_commands|readable|_"
)
# What users and tests of faults alone read, and what starts from outside the package.
OUTSIDE = {"to_events", "to_polars", "groupgt_evaluate", "watch"}
ENTRY_POINTS = {"groupgt.__main__", "groupgt.pytest_plugin", "groupgt.testing"}


def definitions(tree: ast.AST) -> Iterator[str]:
    """Functions, classes, constants and fields."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def uses(tree: ast.AST) -> Iterator[str]:
    """Names and attributes that are read, and the words of short texts, which name plug-ins and keys."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from re.findall(r"\w+", node.value)


def unused(trees: dict[str, ast.Module]) -> list[tuple[str, str]]:
    read = {name for tree in trees.values() for name in uses(tree)} | {f"{result}Teller" for result in TELLERS}
    return [
        (module, name)
        for module, tree in trees.items()
        for name in dict.fromkeys(definitions(tree))
        if name not in read and name not in OUTSIDE and not CALLED_BY_NAME.fullmatch(name)
    ]


def modules_named(module: str, tree: ast.AST) -> Iterator[str]:
    """What a module imports, and the modules that its texts name, as tables of plug-ins and commands do."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.partition(":")[0]
            if re.fullmatch(r"[\w.]+", text):
                yield text
                yield f"groupgt.{text}"
                yield f"{module.rpartition('.')[0]}.{text}"


def orphans(trees: dict[str, ast.Module]) -> list[str]:
    named = {name for module, tree in trees.items() for name in modules_named(module, tree) if name != module}
    return [name for name in trees if not name.endswith("__init__") and name not in named | ENTRY_POINTS]


def test_everything_that_is_defined_is_used() -> None:
    assert unused(TREES) == []


def test_every_module_is_imported_or_named_in_a_table() -> None:
    assert orphans(TREES) == []


def test_every_command_is_in_the_table() -> None:
    functions = {
        name.removesuffix("_command"): module.rpartition(".")[2]
        for module, tree in TREES.items()
        if module.startswith("groupgt.cli.")
        for name in definitions(tree)
        if name.endswith("_command") and module != "groupgt.cli.main"
    }
    assert functions == {name: module for name, (module, _) in COMMANDS.items()}


def test_every_command_is_called() -> None:
    """By an example of its help, which runs, or by a test of the command line."""
    tests = [tree_of(path) for room in ("cli", "experiment") for path in (ROOT / "tests" / room).glob("*.py")]
    lists = [
        node.elts if isinstance(node, ast.List) else node.args
        for tree in tests
        for node in ast.walk(tree)
        if isinstance(node, (ast.List, ast.Call))
    ]
    called = {
        getattr(first, "value", None)
        for first, *rest in filter(None, lists)
        if rest and getattr(rest[0], "value", None) != "--help"
    }
    assert set(COMMANDS) - set(EXAMPLES) - called == set()


def test_every_key_of_experiment_files_is_read() -> None:
    config = "groupgt.experiment.config"
    keys = {
        field.target.id
        for node in ast.walk(TREES[config])
        if isinstance(node, ast.ClassDef)
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    nodes = [node for tree in TREES.values() for node in ast.walk(tree)]
    # A method of the same name, such as `frame.limit(5)`, does not read the key.
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute) and id(node) not in called}
    assert keys - read == set()


def test_every_option_for_measuring_is_read() -> None:
    nodes = [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    read = {node.slice.value for node in nodes if isinstance(node.slice, ast.Constant)}
    assert options_of(EvaluateOptions).keys() - read == set()


def test_every_section_of_the_report_is_shown() -> None:
    """All sections have functions named `blocks`, so calls are found by the section that they name."""
    sections = {
        module.removeprefix("groupgt.report.")
        for module, tree in TREES.items()
        if module.startswith("groupgt.report.")
        and any(isinstance(node, ast.FunctionDef) and node.name == "blocks" for node in tree.body)
    }
    shown = set()
    for nodes in (list(ast.walk(tree)) for tree in TREES.values()):
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "groupgt.report"]
        named = {name.asname or name.name: name.name for node in imports for name in node.names}
        read = [node.value for node in nodes if isinstance(node, ast.Attribute) and node.attr == "blocks"]
        shown |= {named.get(value.id) for value in read if isinstance(value, ast.Name)}
    assert sections - shown == set()


def test_what_can_be_added_to_the_page_is_added_and_nothing_changes_it_later() -> None:
    """A section is built in one place: a caller gives what it adds, and no module changes the data of the page."""
    nodes = [node for name, tree in TREES.items() if name.startswith("groupgt.report.") for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "Added"]
    given = {keyword.arg for call in calls for keyword in call.keywords}
    assert {each.name for each in dataclasses.fields(Added)} - given == set()
    stored = [node for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)]
    assert [ast.unparse(node) for node in stored if ast.unparse(node.value) in ("dataset", "page")] == []
