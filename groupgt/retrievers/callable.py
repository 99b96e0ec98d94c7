"""A retriever of the user's own, in Python: a function, an object, or one of LangChain, LlamaIndex or Haystack."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module, invalidate_caches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from groupgt.errors import ConfigError, Faults, RetrieverError, near_names
from groupgt.retrievers import base
from groupgt.retrievers.frameworks import adapted

__all__ = ["Options", "imported", "made", "source_of"]

# The bytes of the modules of targets, as they were when they were imported.
READ: dict[str, bytes | None] = {}


@dataclass(frozen=True)
class Options(base.Options):
    """The options of `use: python`, which runs code and is refused without --allow-code.

    `target` is `module:name`, looked for beside the experiment file too. A function with a parameter `queries` answers
    by itself, `f(queries, k)`. Any other function, or a class, is called with the keywords in `options` and, where it
    takes one, with `corpus` (`ids` and `texts`), and returns the retriever: an object with `retrieve(queries, k)`, a
    function, or a retriever of LangChain, LlamaIndex or Haystack, of whose documents `id_field` names the metadata that
    hold the id (without it, the document's own id). Answers are kept under the bytes of the module; change `version`
    where anything else that they depend on has changed.
    """

    target: str
    options: dict[str, Any] = field(default_factory=dict)
    id_field: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        faults = Faults()
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", self.target):
            faults.add("target", f"expected module:name, found {self.target!r}")
        faults.stop(ConfigError)


def imported(target: str, folder: Path) -> Any:
    """What `module:name` names; raises `ConfigError` where there is no such thing."""
    module_name, _, name = target.partition(":")
    sys.path[:] = [str(folder), *(each for each in sys.path if each != str(folder))]
    _forget(module_name, folder)
    try:
        found: Any = import_module(module_name)
        READ[module_name] = _source(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or module_name
        raise ConfigError(f"target: there is no module {missing!r}, beside the file or installed") from None
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")
        raise ConfigError(f"target: {module_name} cannot be imported: {what}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            near = near_names(part, [each for each in dir(found) if not each.startswith("_")])
            raise ConfigError(f"target: {module_name} has no {part!r}{near}")
        found = getattr(found, part)
    return found


def _source(module_name: str) -> bytes | None:
    path = source_of(module_name)
    return path.read_bytes() if path is not None and path.is_file() else None


def _forget(module_name: str, folder: Path) -> None:
    """Forgets a module that was imported from another folder, or whose file has changed since.

    In a notebook one process reads many experiment files; answers are kept under the bytes that the file has now.
    """
    top = module_name.partition(".")[0]
    if top not in sys.modules or top in sys.stdlib_module_names:
        return
    invalidate_caches()
    beside = PathFinder.find_spec(top, [str(folder)])
    path, own = source_of(top), beside.origin if beside is not None else None
    elsewhere = path is not None and own is not None and Path(own).resolve() != path.resolve()
    if elsewhere or (module_name in READ and READ[module_name] != _source(module_name)):
        for name in [each for each in sys.modules if f"{each}.".startswith(f"{top}.")]:
            del sys.modules[name]


def source_of(target: str) -> Path | None:
    """The file of an imported target's module, where it has one."""
    path = getattr(sys.modules.get(target.partition(":")[0]), "__file__", None)
    return Path(path) if path else None


def made(setting: base.Setting, options: Options) -> base.Retriever:
    """The retriever that the target is, or makes."""
    module_name, _, name = options.target.partition(":")
    target: Any = sys.modules[module_name]
    for part in name.split("."):
        target = getattr(target, part)
    if inspect.isroutine(target) and "queries" in _parameters(target):
        if options.options:
            raise RetrieverError(f"options: {options.target} answers queries itself, so it takes none")
        return _Function(target)
    if isinstance(target, type) or inspect.isroutine(target):
        keywords = dict(options.options)
        if "corpus" in _parameters(target):
            if not len(setting.corpus):
                raise RetrieverError(f"{options.target} takes a corpus, and the data set has none")
            keywords["corpus"] = setting.corpus
        target = target(**keywords)
    elif options.options:
        raise RetrieverError(f"options: {options.target} is no function and no class, so it takes none")
    found = adapted(target, options.id_field)
    if found is not None:
        return found
    if hasattr(target, "retrieve"):
        retriever: base.Retriever = target
        return retriever
    if callable(target):
        return _Function(target)
    raise RetrieverError(
        f"{options.target}: expected an object with retrieve(queries, k), a function, or a retriever of LangChain, "
        f"LlamaIndex or Haystack, found {type(target).__name__}"
    )


def _parameters(target: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(target).parameters)
    except (TypeError, ValueError):
        return []


class _Function:
    """A function as a retriever."""

    def __init__(self, function: Callable[[Sequence[str], int], Sequence[base.Ranking]]) -> None:
        self.function = function

    def retrieve(self, queries: Sequence[str], k: int) -> Sequence[base.Ranking]:
        """What the function returns."""
        return self.function(queries, k)
