"""Every public function and class, with signature and docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import groupgt
from docs.generate.markdown import block, cell, code, docstring, page, plain, table


def pages() -> dict[str, str]:
    functions = {name: held for name, held in _public() if inspect.isroutine(held)}
    classes = {name: held for name, held in _public() if inspect.isclass(held) and not issubclass(held, Exception)}
    errors = {name: held for name, held in _public() if inspect.isclass(held) and issubclass(held, Exception)}
    rows = [[f"[{code(name)}]({name}.md)", _line(held)] for name, held in {**functions, **classes}.items()]
    told = [[code(name), code(held.__mro__[1].__name__), _line(held)] for name, held in errors.items()]
    index = page(
        "Python",
        f"`import groupgt` provides {len(functions)} functions, {len(classes)} classes and {len(errors)} errors.",
        table(["name", "description"], rows),
        "## Errors",
        "Every error says what is wrong and where, what was expected, what was found, and how to fix it. "
        "If there are several errors, `faults` lists all of them.",
        table(["error", "is a", "raised for"], told),
        f"`groupgt.__version__` is {code(groupgt.__version__)}.",
    )
    made = {"reference/python/index.md": index}
    made |= {f"reference/python/{name}.md": _function(name, held) for name, held in functions.items()}
    return made | {f"reference/python/{name}.md": _class(name, held) for name, held in classes.items()}


def _public() -> list[tuple[str, Any]]:
    return [(name, getattr(groupgt, name)) for name in groupgt.__all__ if not name.startswith("_")]


def _line(held: Any) -> str:
    return cell((inspect.getdoc(held) or "").partition("\n\n")[0])


def signature(name: str, held: Any) -> str:
    """Return a signature as in the source, with one argument per line if it is long."""
    found = inspect.signature(held)
    result = "" if found.return_annotation is found.empty else f" -> {_type(found.return_annotation)}"
    parts = []
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(parameter))
    short = f"{name}({', '.join(parts)}){result}"
    return short if len(short) <= 90 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    hint = "" if parameter.annotation is parameter.empty else f": {_type(parameter.annotation)}"
    equals = " = " if hint else "="
    default = "" if parameter.default is parameter.empty else f"{equals}{parameter.default!r}"
    return f"{stars}{parameter.name}{hint}{default}"


def _type(hint: Any) -> str:
    """Return an annotation as it is written."""
    return hint if isinstance(hint, str) else inspect.formatannotation(hint)


def _function(name: str, held: Any) -> str:
    return page(f"groupgt.{name}", block(signature(name, held), "python"), docstring(inspect.getdoc(held) or ""))


def members(held: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of a class, including those inherited from groupgt's classes."""
    names: dict[str, Any] = {}
    for base in reversed(held.__mro__):
        if base.__module__.startswith("groupgt"):
            names |= {name: member for name, member in vars(base).items() if not name.startswith("_")}
    for name, member in names.items():
        function = getattr(member, "__func__", getattr(member, "func", member))
        if isinstance(member, property) or callable(function):
            yield name, member


def _class(name: str, held: type) -> str:
    fields = [
        [code(each.name), code(each.type)]
        for each in getattr(held, "__dataclass_fields__", {}).values()
        if not each.name.startswith("_")
    ]
    parts = [docstring(inspect.getdoc(held) or "")]
    parts += [table(["field", "type"], fields)] if fields else []
    for member, made in members(held):
        if member in getattr(held, "__dataclass_fields__", {}):
            continue
        parts += [f"## {member}", *_member(member, made)]
    return page(f"groupgt.{name}", *parts)


def _member(name: str, member: Any) -> list[str]:
    told = docstring(inspect.getdoc(member) or "")
    function = getattr(member, "__func__", member)
    if inspect.isfunction(function):
        return [block(signature(name, function), "python"), told]
    getter = getattr(member, "fget", None) or getattr(member, "func", None)
    hint = getattr(getter, "__annotations__", {}).get("return", "")
    return [plain("A property") + (f", {code(hint)}." if hint else "."), told]
