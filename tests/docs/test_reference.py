"""Whatever can be named stands in the reference: public names, methods, options, YAML keys, metrics, formats, files.

What there is to name is asked of click, pydantic, the registries and `groupgt.__all__` here, on roads of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel

import groupgt
from docs.generate import formulas, keys, outcomes, pages
from docs.generate.markdown import code, docstring, plain
from groupgt import plugins
from groupgt.cli.main import COMMANDS, cli
from groupgt.experiment.config import Config
from groupgt.formats.detect import FORMATS
from groupgt.formats.write import RUN_WRITERS, TRUTH_WRITERS
from groupgt.metrics.catalogue import ALIASES, CATALOGUE
from groupgt.model.policy import CHOICES

REFERENCE = {path: text for path, text in pages().items() if path.startswith("reference/")}


def public_names() -> Iterator[tuple[str, str, str]]:
    for name in groupgt.__all__:
        held = getattr(groupgt, name)
        if name == "__version__" or (inspect.isclass(held) and issubclass(held, Exception)):
            yield "public name", name, "reference/python/index.md"
            continue
        page = f"reference/python/{name}.md"
        yield "public name", name, page
        if not inspect.isclass(held):
            for parameter in inspect.signature(held).parameters:
                yield f"parameter of {name}", parameter, page
            continue
        for member in dir(held):
            made = inspect.getattr_static(held, member)
            ours = getattr(getattr(held, member, None), "__module__", "groupgt") or "groupgt"
            if not member.startswith("_") and ours.startswith("groupgt") and hasattr(made, "__get__"):
                yield f"member of {name}", member, page
        for field in fields(held) if is_dataclass(held) else ():
            if not field.name.startswith("_"):
                yield f"field of {name}", field.name, page


def options() -> Iterator[tuple[str, str, str]]:
    context = click.Context(cli)
    for name in COMMANDS:
        page = f"reference/commands/{name}.md"
        yield "command", f"groupgt {name}", page
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                for text in [] if parameter.hidden else parameter.opts:
                    yield f"option of {name}", text, page
            else:
                yield f"argument of {name}", parameter.make_metavar(click.Context(command)).strip("[].…"), page


def sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from sections(argument)


def yaml_keys(model: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        yield f"key of {model.__name__}", field.alias or name, "reference/experiment-file.md"
        for below in sections(field.annotation):
            yield from yaml_keys(below)


def metrics() -> Iterator[tuple[str, str, str]]:
    for name, definition in CATALOGUE.items():
        page = f"reference/metrics/{name}.md"
        yield "metric", name, page
        for convention, formula in definition.formulas.items():
            yield f"formula of {name}", formula.text, page
            yield f"convention of {name}", f"{name}.{convention}" if convention else name, page
            for parameter in definition.parameters_of(convention):
                yield f"parameter of {name}", parameter.name, page
    for alias, target in ALIASES.items():
        yield "alias", alias, f"reference/metrics/{re.split('[.(@]', target)[0]}.md"


def choices() -> Iterator[tuple[str, str, str]]:
    for kind, known in plugins.KINDS.items():
        for name in plugins.ours(kind) if kind != "metric" else ():
            page = f"reference/{known.plural}.md"
            yield kind, name, page
            chosen = plugins.find(kind, name).options
            for field in fields(chosen) if chosen is not None else ():
                yield f"option of {kind} {name}", field.name, page
    for text in (
        *(each.name for each in fields(groupgt.Policy)),
        *(each for known in CHOICES.values() for each in known),
    ):
        yield "policy", text, "reference/policies.md"
    for name in [*(known.name for known in FORMATS), *TRUTH_WRITERS, *RUN_WRITERS]:
        yield "format", name, "reference/formats.md"


def outcome_names() -> Iterator[tuple[str, str, str]]:
    for status in outcomes.exits():
        yield "exit status", str(status), "reference/outcomes.md"
    for name in outcomes.files():
        yield "file", name, "reference/outcomes.md"


ROADS = {
    "public names": public_names,
    "options": options,
    "keys": lambda: yaml_keys(Config),
    "metrics": metrics,
    "choices": choices,
    "outcomes": outcome_names,
}


def missing(named: Iterator[tuple[str, str, str]], reference: dict[str, str] = REFERENCE) -> list[str]:
    """What is named, but not as a word of its own on its page."""
    wrong = []
    for what, name, page in named:
        text = reference.get(page, "")
        if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text.replace("\\_", "_").replace("\\", "")) and (
            name not in text
        ):
            wrong.append(f"{what}: {name} is not on {page}")
    return wrong


@pytest.mark.parametrize("road", ROADS)
def test_whatever_can_be_named_is_in_the_reference(road: str) -> None:
    named = list(ROADS[road]())
    assert len(named) > 5
    assert missing(iter(named)) == []


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page = "reference/commands/evaluate.md"
    without = {**REFERENCE, page: REFERENCE[page].replace("--convention", "")}
    assert "option of evaluate: --convention is not on reference/commands/evaluate.md" in missing(options(), without)
    monkeypatch.setitem(CHOICES, "colors", ("many",))
    assert missing(choices()) == ["policy: many is not on reference/policies.md"]


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
    shown = [text for path, text in REFERENCE.items() if path.startswith("reference/metrics/") and "\n$$\n" in text]
    assert len(shown) > 20


def test_a_formula_of_another_text_is_not_shown() -> None:
    assert formulas.tex_of("recall.autorag", "groups met ÷ m")
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
        print(f"{len(held):5} {road}, {len(missing(iter(held)))} missing")
    print(f"{sum(len(list(names())) for names in ROADS.values()):5} names")
