"""The shape of the house: imports point one way, names are public on purpose, nothing private is named."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import groupgt
from groupgt import plugins
from tests.sources import tree_of

pytestmark = pytest.mark.slow

ROOT = Path(groupgt.__file__).parent
# Left never imports right; members of one set do not know one another.
LAYERS = [
    {"errors", "native", "records", "runtime"},
    {"plugins", "private"},
    {"options"},
    {"schemas"},
    {"model"},
    {"formats"},
    {"labellers", "metrics", "render", "retrievers", "store"},
    {"engines"},
    {"evaluation"},
    {"comparison", "curation"},
    {"judge", "testing"},
    {"experiment"},
    {"results"},
    {"report"},
    {"cli", "pytest_plugin"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(
    each.name for each in pkgutil.walk_packages([str(ROOT)], "groupgt.") if each.name != "groupgt.__main__"
)
# What only one part may import, for weight or for taste.
HOMES = {
    "yaml": {"experiment", "results"},
    "tabulate": {"render"},
    "scipy": {"comparison"},
    "click": {"cli"},
}
# What may import the package itself, for its version and its errors.
OUTERMOST = {"cli", "experiment", "report", "results"}
# What of `render` makes text and pictures is used where things are told.
TELLS = {"document", "encodings", "figures", "layout", "themes", "tradeoffs"}
WRITES = {"fixed", "p_text", "signed", "small", "snippet", "span", "table"}
# Results ask for what is told of them: the one import that points right.
HOOK = ("groupgt.render.results", "groupgt.report.tellers")


def statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, those inside others too; expressions, which are most of a file, are passed over."""
    for node in body:
        yield node
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            yield from statements(getattr(node, name, []))


def imports(path: Path) -> list[str]:
    found = []
    for node in statements(tree_of(path).body):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "groupgt":
                found += [f"groupgt.{alias.name}" if alias.name in LEVEL else "groupgt" for alias in node.names]
            else:
                found.append(node.module or "")
    return found


FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.parent != ROOT or not path.name.startswith("__")]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


def wrong_way(own: str, name: str, module: str = "") -> str:
    """What is wrong with an import of `name` in the part `own`; empty where nothing is."""
    top, *parts = name.split(".")
    if own not in HOMES.get(top, {own}):
        return f"{top} belongs in {HOMES[top]}"
    if top != "groupgt" or (module, name) == HOOK:
        return ""
    if not parts or parts[0] not in LEVEL:
        return "" if own in OUTERMOST else f"{name} is imported by nobody inside"
    return "" if parts[0] == own or LEVEL[parts[0]] < LEVEL[own] else f"{own} imports {parts[0]}"


def test_imports_point_one_way() -> None:
    wrong = []
    for path in FILES:
        own, module = path.relative_to(ROOT).parts[0].removesuffix(".py"), module_of(path)
        wrong += [f"{module}: {fault}" for name in imports(path) if (fault := wrong_way(own, name, module))]
    assert wrong == []


def told(tree: ast.AST) -> Iterator[str]:
    """What of `render` code imports, at once or late, to make text of numbers or to draw."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("groupgt.render"):
            home = (node.module or "").removeprefix("groupgt.render").strip(".")
            names = {alias.name for alias in node.names}
            yield from names & (TELLS | {"tables"}) if not home else names & WRITES if home == "tables" else ()
            if home.partition(".")[0] in TELLS:
                yield home


def test_only_what_is_right_of_measuring_words_numbers() -> None:
    """Left of `report` only errors, warnings, `repr` and worked formulas make text of numbers."""
    wording = {}
    for path in FILES:
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room not in ("render", "report", "cli"):
            wording[module_of(path)] = sorted(told(tree_of(path)))
    assert {module: names for module, names in wording.items() if names} == {}


def loads(node: ast.AST) -> Iterator[str]:
    """What the code in a node names, at once, late or for types: modules, and names in them that may be modules."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (part.value for part in node.args if isinstance(part, ast.Constant))
    for child in ast.iter_child_nodes(node):
        yield from loads(child)


def circles(imported: dict[str, set[str]]) -> set[frozenset[str]]:
    """The largest sets of modules each of which leads to each other."""
    reached = {name: set(others) for name, others in imported.items()}
    for middle, beyond in reached.items():
        for others in reached.values():
            others |= beyond if middle in others else set()
    return {
        frozenset(other for other in others if name in reached[other])
        for name, others in reached.items()
        if name in others
    }


def test_no_circle_of_files_but_for_the_hook() -> None:
    imported = {}
    for path in FILES:
        imported[module_of(path)] = set(loads(tree_of(path)))
    source, target = HOOK
    imported[source].remove(target)
    imported = {name: targets & set(imported) for name, targets in imported.items()}
    assert circles(imported) == set()


def test_every_module_imports_and_the_public_names_stay() -> None:
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__ or name.endswith(tuple(LEVEL)), name
        # A module directly below the package would hide a function of its name.
        assert callable(groupgt.evaluate), name
        assert callable(groupgt.label), name
        assert name.removeprefix("groupgt.") not in groupgt._HOME, name
        for public in getattr(module, "__all__", []):
            assert hasattr(module, public), f"{name}.{public}"


def test_public_names() -> None:
    assert set(groupgt.__all__) == set(groupgt._HOME) | {"__version__"}
    for name in groupgt.__all__:
        assert getattr(groupgt, name) is not None
    assert dir(groupgt) == groupgt.__all__
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        _ = groupgt.evalute


def test_type_checkers_see_the_public_names() -> None:
    """What is imported when asked for, and what type checkers are told, are the same names of the same modules."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {name: f"groupgt.{home}" for name, home in groupgt._HOME.items()}


def loaded(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_groupgt_loads_nothing_heavy() -> None:
    assert not {"numpy", "polars", "yaml", "tabulate", "click", "bm25s"} & loaded("import groupgt")


def test_lists_need_little() -> None:
    evaluated = "import groupgt; found = groupgt.evaluate({'q': [['a']]}, {'q': ['a']}, ['recall'])"
    assert sum(name.startswith("groupgt.") for name in loaded(evaluated)) <= 75
    modules = loaded(f"{evaluated}; print(found)")
    assert not {"polars", "urllib.request", "xml.sax"} & modules


def test_small_files_need_no_polars(tmp_path: Path) -> None:
    (tmp_path / "qa.jsonl").write_text('{"qid": "q", "retrieval_gt": [["a"]]}\n')
    (tmp_path / "run").write_text("q Q0 a 1 1 t\n")
    call = f"['evaluate', r'{tmp_path / 'qa.jsonl'}', r'{tmp_path / 'run'}']"
    code = "import sys, atexit; atexit.register(lambda: print(' '.join(sys.modules)));"
    code += f"from groupgt.cli.main import main; main({call})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "recall" in done.stdout
    unneeded = {"polars", "yaml", "bm25s", "urllib.request", "concurrent.futures", "groupgt.render.drawing"}
    assert not unneeded & set(done.stdout.split())


def test_modules_are_small() -> None:
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: count for name, count in lines.items() if count > 520} == {}


@pytest.mark.parametrize("path", sorted((ROOT.parent / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_benchmarks_import_what_exists(path: Path) -> None:
    found = [each for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(each, ast.ImportFrom)]
    names = [
        (each.module, name.name)
        for each in found
        if each.module and each.module.startswith("groupgt")
        for name in each.names
    ]
    missing = [
        each
        for each in names
        if importlib.util.find_spec(each[0]) is None
        or not (
            hasattr(importlib.import_module(each[0]), each[1]) or importlib.util.find_spec(".".join(each)) is not None
        )
    ]
    assert missing == []


def test_doctests(monkeypatch: pytest.MonkeyPatch) -> None:
    import doctest

    monkeypatch.setattr(plugins, "REGISTERED", {})  # an example registers a metric

    finder, runner = (
        doctest.DocTestFinder(exclude_empty=True),
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE),
    )
    for name in ["groupgt", *MODULES]:
        for test in finder.find(importlib.import_module(name)):
            runner.run(test)
    assert runner.failures == 0
    assert runner.tries > 40


FUNCTIONS = [name for name in groupgt.__all__ if inspect.isfunction(getattr(groupgt, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstrings_list_each_parameter(name: str) -> None:
    """Each parameter of a public function has a line of its own, in the order of the signature, and no other has."""
    function = getattr(groupgt, name)
    _, _, listed = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    described = re.findall(r"^    (\w+): \S", listed.partition("\n\n")[0], re.MULTILINE)
    assert described == list(inspect.signature(function).parameters)


def test_help_loads_little() -> None:
    code = "import sys, atexit; atexit.register(lambda: print(*sys.modules));"
    code += "from groupgt.cli.main import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "tabulate", "groupgt.formats.parts"} & set(done.stdout.split())
