"""A retriever of the user's own, in Python: a function, an object, or one of LangChain, LlamaIndex or Haystack."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from groupgt.errors import ConfigError, Faults, RetrieverError
from groupgt.retrievers import base
from groupgt.retrievers.frameworks import adapted

__all__ = ["Options", "made"]


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
