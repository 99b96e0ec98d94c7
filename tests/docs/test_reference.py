"""Whatever can be named stands in the reference: public names, methods, options, YAML keys, metrics, formats, files.

What there is to name is asked of click, the registries and `groupgt.__all__` here, on roads of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_origin

import click
import pytest

import groupgt
from docs.generate import formulas, keys, outcomes, pages
from docs.generate.markdown import code, docstring, plain
from groupgt import plugins
from groupgt.cli.main import COMMANDS, cli
from groupgt.experiment.config import Config
from groupgt.formats.known import FORMATS
from groupgt.formats.write import FLAT, RUN_WRITERS, TRUTH_WRITERS
from groupgt.metrics.catalogue import ALIASES, CATALOGUE
from groupgt.metrics.description import as_dict
from groupgt.model.policy import CHOICES
from groupgt.options import options_of
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.slow


@cache
def reference() -> dict[str, str]:
    """The pages of the reference, by path."""
    return {path: text for path, text in pages().items() if path.startswith("reference/")}


@dataclass(frozen=True)
class Named:
    """What must stand in the reference: its kind and name, the page, and the form it has there."""

    what: str
    name: str
    page: str
    form: str

    @property
    def is_there(self) -> bool:
        return bool(re.search(self.form, reference().get(self.page, ""), re.MULTILINE))


def title(what: str, name: str, page: str, text: str = "") -> Named:
    return Named(what, name, page, rf"^# {re.escape(text or name)}$")


def section(what: str, name: str, page: str) -> Named:
    return Named(what, name, page, rf"^## {re.escape(name)}$")


def row(what: str, name: str, page: str) -> Named:
    """The first cell of a row, alone or among other spellings."""
    return Named(what, name, page, rf"^\| \[?`(?:[^`]*[\s,])?{re.escape(name)}(?:[\s,\[][^`]*)?`")


def item(what: str, name: str, page: str) -> Named:
    return Named(what, name, page, rf"^- `{re.escape(name)}`: ")


def text(what: str, name: str, page: str) -> Named:
    return Named(what, name, page, rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def public_names() -> Iterator[Named]:
    for name in groupgt.__all__:
        held = getattr(groupgt, name)
        if name == "__version__":
            yield text("public name", name, "reference/python/index.md")
            continue
        yield row("public name", name, "reference/python/index.md")
        if inspect.isclass(held) and issubclass(held, Exception):
            continue
        page = f"reference/python/{name}.md"
        yield title("public name", name, page, f"groupgt.{name}")
        if not inspect.isclass(held):
            for parameter in inspect.signature(held).parameters:
                yield item(f"parameter of {name}", parameter, page)
            continue
        known = {each.name for each in fields(held)} if is_dataclass(held) else set()
        for field in known:
            if not field.startswith("_"):
                yield row(f"field of {name}", field, page)
        for member in set(dir(held)) - known:
            made = inspect.getattr_static(held, member)
            ours = getattr(getattr(held, member, None), "__module__", "groupgt") or "groupgt"
            if not member.startswith("_") and ours.startswith("groupgt") and hasattr(made, "__get__"):
                yield section(f"member of {name}", member, page)


def options() -> Iterator[Named]:
    context = click.Context(cli)
    for name in COMMANDS:
        page = f"reference/commands/{name}.md"
        yield title("command", f"groupgt {name}", page)
        yield row("command", f"groupgt {name}", "reference/commands/index.md")
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for opt in [] if parameter.hidden else parameter.opts:
                    yield row(f"option of {name}", opt, page)
            else:
                yield text(f"argument of {name}", parameter.make_metavar(click.Context(command)).strip("[].…"), page)


def sections(annotation: Any, path: str) -> Iterator[tuple[type[Any], str]]:
    """The sections that a value may be, and the way to their keys."""
    if inspect.isclass(annotation) and is_dataclass(annotation):
        yield annotation, path
    step = {dict: ".NAME", list: "[]"}.get(get_origin(annotation), "")
    for argument in get_args(annotation):
        yield from sections(argument, path + step)


def yaml_keys(section_type: type[Any], path: str = "") -> Iterator[Named]:
    for name, option in options_of(section_type).items():
        key = f"{path}.{name}".removeprefix(".")
        yield section("key", key, "reference/experiment-file.md")
        for below, way in sections(option.hint, key):
            yield from yaml_keys(below, way)


def metrics() -> Iterator[Named]:
    for name, definition in CATALOGUE.items():
        page = f"reference/metrics/{name}.md"
        yield title("metric", name, page)
        yield row("metric", name, "reference/metrics/index.md")
        for convention, formula in definition.formulas.items():
            yield text(f"formula of {name}", formula.text, page)
            yield section(f"convention of {name}", f"{name}.{convention}" if convention else name, page)
            for parameter in formula.parameters:
                yield row(f"parameter of {name}", parameter.name, page)
    for alias, target in ALIASES.items():
        page = f"reference/metrics/{re.split('[.(@]', target)[0]}.md"
        yield Named("alias", alias, page, rf"^- Also written .*`{re.escape(alias)}`")


def choices() -> Iterator[Named]:
    for kind, names in plugins.OURS.items():
        for name in names:
            page = f"reference/{plugins.KINDS[kind].plural}.md"
            yield section(kind, name, page)
            chosen = plugins.find(kind, name).options
            for field in fields(chosen) if chosen is not None else ():
                yield row(f"option of {kind} {name}", field.name, page)
    for each in fields(groupgt.Policy):
        yield row("policy", each.name, "reference/policies.md")
    for choice in sorted({each for known in CHOICES.values() for each in known}):
        yield Named("policy", choice, "reference/policies.md", rf"^\|[^|]*\|.*(?<![\w-]){choice}(?![\w-])")
    for name in [*(known.name for known in FORMATS), *TRUTH_WRITERS, *RUN_WRITERS]:
        yield row("format", name, "reference/formats.md")


def outcome_names() -> Iterator[Named]:
    for status in outcomes.exits():
        yield row("exit status", str(status), "reference/outcomes.md")
    for name in outcomes.files():
        yield row("file", name, "reference/outcomes.md")


ROADS: dict[str, Callable[[], Iterator[Named]]] = {
    "public names": public_names,
    "options": options,
    "keys": lambda: yaml_keys(Config),
    "metrics": metrics,
    "choices": choices,
    "outcomes": outcome_names,
}


def missing(named: Iterable[Named]) -> list[str]:
    """What is named, but not where and as the reference shows it."""
    return [f"{each.what}: {each.name} is not on {each.page}" for each in named if not each.is_there]


@pytest.mark.parametrize("road", ROADS)
def test_whatever_can_be_named_is_in_the_reference(road: str) -> None:
    named = list(ROADS[road]())
    assert len(named) > 5
    assert missing(named) == []


def test_every_format_is_explained() -> None:
    """In a handwritten page, beside the generated list of names."""
    pages = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("formats.md", "benchmarks.md"))
    names = dict.fromkeys([*(known.name for known in FORMATS), *TRUTH_WRITERS, *RUN_WRITERS, FLAT])
    missing_names = [name for name in names if not re.search(rf"(?i)(?<![\w-]){re.escape(name)}(?![\w-])", pages)]
    assert missing_names == [], "neither docs/formats.md nor docs/benchmarks.md has these"


def test_what_formats_keep_and_how_they_are_read() -> None:
    """Everything in JSON Lines, grades alone in qrels; and readers with options say what they do, not what they are."""
    text = reference()["reference/formats.md"]
    kept = {row[0]: row[1:] for row in (line.strip("| ").split(" | ") for line in text.splitlines()) if len(row) == 11}
    assert set(kept["`jsonl`"]) == {"yes"}
    assert kept["`trec`"] == ["–", "yes", *["–"] * 8]
    assert not re.search(r"partial\(|<function|raises ", text)


def test_exit_statuses_and_files_are_explained() -> None:
    assert outcomes.exits() <= set(outcomes.EXITS)
    assert set(outcomes.files()) <= set(outcomes.FILES)


def test_every_key_has_a_type_and_an_example() -> None:
    for key in keys.keys_of():
        assert keys.type_of(key.schema)
        text, _ = keys.example(key)
        assert f"{key.path[-1]}:" in text


def test_formulas_are_those_of_metrics_that_there_are() -> None:
    known = {
        f"{name}.{convention}" if convention else name for name, own in CATALOGUE.items() for convention in own.formulas
    }
    assert set(formulas.TEX) <= known
    shown = [text for path, text in reference().items() if path.startswith("reference/metrics/") and "\n$$\n" in text]
    assert len(shown) > 20


def test_every_formula_of_ids_is_shown_as_mathematics() -> None:
    """Metrics that compare texts, or count what an unanswerable query gets, are explained in words alone."""
    ids = [own for own in CATALOGUE.values() if not (own.reads_texts or own.queries != "answerable")]
    shown = [formula for own in ids for formula in as_dict(own)["formulas"]]
    lacking = [each["metric"] for each in shown if not formulas.tex_of(each["metric"], each["formula"])]
    assert lacking == [], "docs/generate/formulas.py has no TeX beside the catalogue's text of these"


def test_a_formula_of_another_text_is_not_shown() -> None:
    assert formulas.tex_of("recall.autorag", "groups covered ÷ m")
    assert formulas.tex_of("recall.autorag", "groups met ÷ R") == ""
    assert formulas.tex_of("new", "groups met ÷ R") == ""


def test_markdown() -> None:
    assert plain("a_b `c_d` <e>") == "a\\_b `c_d` \\<e>"
    assert code("a|b`") == "``a\\|b```"
    text = "Says it.\n\nArgs:\n    one: The first,\n        at length.\n    two: The second.\n"
    assert docstring(text) == "Says it.\n\n- `one`: The first, at length.\n- `two`: The second."


if __name__ == "__main__":
    # How many names there are, and how many of them the reference lacks.
    for road, names in ROADS.items():
        held = list(names())
        print(f"{len(held):5} {road}, {len(missing(held))} missing")
    print(f"{sum(len(list(names())) for names in ROADS.values()):5} names")
