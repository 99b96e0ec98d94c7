"""Write corpus.jsonl, with a passage for every documented object in this interpreter's standard library.

python examples/python_stdlib/build.py [PATH]
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FEWEST = 3  # a passage's docstring has at least this many words of two letters or more

# Excluded: modules that open windows or print poems, modules documented under another name, internals, modules that
# need Tk (which many interpreters lack), modules that Python 3.12 or 3.13 removed, private modules and tests.
SKIPPED = re.compile(
    r"""
    antigravity|this
    |genericpath|nt|ntpath|nturl2path|opcode|posix|posixpath|pyexpat
    |encodings|idlelib|pydoc_data|sre_compile|sre_constants|sre_parse
    |tkinter|turtle|turtledemo
    |aifc|asynchat|asyncore|audioop|cgi|cgitb|chunk|crypt|distutils|imghdr|imp|lib2to3|mailcap|msilib|nis|nntplib
    |ossaudiodev|pipes|smtpd|sndhdr|spwd|sunau|telnetlib|uu|xdrlib
    |(.*\.)?(_.*|tests?)
    """,
    re.VERBOSE,
)

# For objects with several public names, where the rules below would not choose the documented name.
PREFERRED = {
    "unittest.main",
    "email.parser.BytesFeedParser",
    "email.parser.FeedParser",
    "xml.etree.ElementTree.fromstring",
}
REFUSED = {"socket.SocketType", "xmlrpc.server.ServerHTMLDoc"}

MEMBERS = (
    types.FunctionType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    classmethod,
    staticmethod,
    property,
    functools.cached_property,
)


def load(name: str) -> types.ModuleType | None:
    """Return the module, or None if it cannot be imported."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return importlib.import_module(name)
    except Exception:
        return None


def modules() -> dict[str, types.ModuleType]:
    """Return the standard library's public modules, by name."""
    found = {}
    queue = sorted(sys.stdlib_module_names, reverse=True)
    while queue:
        name = queue.pop()
        if SKIPPED.fullmatch(name) or not (module := load(name)):
            continue
        found[name] = module
        queue += sorted(
            (f"{name}.{m.name}" for m in pkgutil.iter_modules(getattr(module, "__path__", []))), reverse=True
        )
    # Use the same docstrings on every system: on Windows, os.path is another module, whose join has no docstring.
    found["os.path"] = importlib.import_module("posixpath")
    return found


def exported(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield a module's exports: `__all__` and public submodules' names, or else its own and private modules' names."""
    listed = vars(module) if module.__name__ == "builtins" else getattr(module, "__all__", None)
    for name in sorted({*vars(module), *(listed or ())}):
        value = getattr(module, name, None)
        if name.startswith("_") or isinstance(value, types.ModuleType) or not callable(value):
            continue
        home = str(getattr(value, "__module__", None) or module.__name__)
        private = bool(re.search(r"(^|\.)_", home))
        if listed is None:
            offered = home == module.__name__ or private
        else:
            offered = name in listed or (home.startswith(f"{module.__name__}.") and not private)
        if offered:
            yield name, value


def underlying(value: Any) -> Any:
    """Return the object that several names can share, such as a function instead of its bindings."""
    if isinstance(value, types.BuiltinMethodType) and not isinstance(value.__self__, types.ModuleType | type | None):
        return inspect.getattr_static(type(value.__self__), value.__name__, value)
    return getattr(value, "__func__", value)


def own_doc(value: Any) -> str:
    """Return the object's own docstring, or an empty string if it has none."""
    if isinstance(value, type):
        doc = vars(value).get("__doc__")
        init = vars(value).get("__init__")
        parts = [doc, init.__doc__ if isinstance(init, types.FunctionType) else None]
        if isinstance(doc, str) and re.fullmatch(rf"{value.__name__}\(.*\)", doc):
            parts[0] = None  # a generated signature
        return "\n\n".join(inspect.cleandoc(part) for part in parts if isinstance(part, str))
    doc = getattr(value, "__doc__", None)
    return inspect.cleandoc(doc) if isinstance(doc, str) and doc != type(value).__doc__ else ""


def signature(value: Any) -> str:
    """Return the signature as text, or an empty string if Python can't tell it."""
    try:
        known = inspect.signature(value)
    except Exception:  # evaluating defaults may raise anything
        return ""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(known)).replace(repr(sys.executable), "sys.executable")


def passages() -> dict[str, str]:
    """Return the passages' contents, by public name."""
    loaded = modules()
    names: dict[int, tuple[tuple[Any, ...], str, Any]] = {}  # an object's best name, by the object's identity

    def offer(qualified: str, value: Any, *rank: Any) -> None:
        key = id(underlying(value))
        offered = ((qualified not in PREFERRED, qualified.count("."), *rank, qualified), qualified, value)
        if qualified not in REFUSED and (key not in names or offered[0] < names[key][0]):
            names[key] = offered

    for module_name, module in loaded.items():
        for name, value in exported(module):
            qualified = name if module_name == "builtins" else f"{module_name}.{name}"
            home = getattr(value, "__module__", None)
            offer(qualified, value, home != module_name, name != getattr(value, "__name__", None))

    classes = {value: name for _, name, value in list(names.values()) if isinstance(value, type)}
    for cls, class_name in classes.items():
        for name in sorted({name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")}):
            definers = [base for base in cls.__mro__ if name in vars(base)]
            value = vars(definers[0])[name]
            if not isinstance(value, MEMBERS) or (definers[0] is not cls and definers[0] in classes):
                continue
            doc = own_doc(underlying(value))
            if not any(base in classes and doc == own_doc(underlying(vars(base)[name])) for base in definers[1:]):
                offer(f"{class_name}.{name}", value, len(cls.__mro__), 0)

    found = {name: (own_doc(module), "") for name, module in loaded.items()}
    for _, name, value in names.values():
        found[name] = (own_doc(underlying(value)), signature(underlying(value)))
    texts = {}
    for name, (doc, known) in sorted(found.items()):
        if len(re.findall(r"[A-Za-z]{2,}", doc)) >= FEWEST:
            texts[name] = f"{name}{known}\n\n{doc}"
    return texts


def main() -> None:
    """Write the corpus to the given path, or next to this file."""
    warnings.simplefilter("ignore")
    os.environ["TERM"] = "dumb"  # keeps readline from writing to the terminal
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("corpus.jsonl")
    texts = passages()
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for name, contents in texts.items():
            file.write(json.dumps({"doc_id": name, "contents": contents}, ensure_ascii=False) + "\n")
    print(f"{len(texts)} passages: {path}")


if __name__ == "__main__":
    main()
