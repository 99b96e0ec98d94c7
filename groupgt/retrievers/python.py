"""A retriever of the user's own, in Python: a function, an object, or one of LangChain, LlamaIndex or Haystack."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from groupgt.errors import RetrieverError
from groupgt.options import Clash
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin


def adapted(target: Any, id_field: str) -> base.Retriever | None:
    """A retriever around an object of a framework, or None where it is of none."""
    families = {each.__module__.split(".")[0] for each in type(target).__mro__}
    if families & {"llama_index", "llama_index_core"} and hasattr(target, "retrieve"):
        return _OneByOne(target, id_field, _llama_index)
    if families & {"langchain_core", "langchain", "langchain_community"} and hasattr(target, "invoke"):
        return _OneByOne(target, id_field, _langchain)
    if hasattr(target, "__haystack_input__") and hasattr(target, "run"):
        return _OneByOne(target, id_field, _haystack)
    return None


class _OneByOne:
    """Asks a framework's object one question after the other, and cuts what it returns at k.

    Haystack's are told k. Those of LangChain and LlamaIndex hold a number of results of their own, which is theirs to
    keep; where it is smaller than k, the host warns.
    """

    def __init__(
        self, target: Any, id_field: str, ask: Callable[[Any, str, int, str], Iterator[tuple[Any, Any]]]
    ) -> None:
        self.target, self.id_field, self.ask = target, id_field, ask

    def retrieve(self, queries: Sequence[str], k: int) -> list[base.Ranking]:
        """(id, score) where every result of a question has a score, else ids."""
        rankings: list[base.Ranking] = []
        for query in queries:
            found = list(islice(self.ask(self.target, query, k, self.id_field), k))
            scored = all(score is not None for _, score in found)
            rankings.append(found if scored else [name for name, _ in found])
        return rankings


def _langchain(target: Any, query: str, k: int, id_field: str) -> Iterator[tuple[Any, Any]]:
    for document in target.invoke(query):
        yield _id(document.metadata, getattr(document, "id", None), id_field, "LangChain"), None


def _llama_index(target: Any, query: str, k: int, id_field: str) -> Iterator[tuple[Any, Any]]:
    for found in target.retrieve(query):
        yield _id(found.node.metadata, found.node.node_id, id_field, "LlamaIndex"), found.score


def _haystack(target: Any, query: str, k: int, id_field: str) -> Iterator[tuple[Any, Any]]:
    taken = inspect.signature(target.run).parameters
    anything = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    if not anything and "query" not in taken:
        known = ", ".join(taken) or "nothing"
        raise RetrieverError(f"{type(target).__name__} of Haystack takes no query; it takes {known}")
    told = {"top_k": k} if anything or "top_k" in taken else {}
    for document in target.run(query=query, **told)["documents"]:
        yield _id(document.meta, document.id, id_field, "Haystack"), document.score


def _id(metadata: Mapping[str, Any], own: Any, id_field: str, framework: str) -> Any:
    if id_field:
        if id_field not in metadata:
            known = ", ".join(map(str, metadata)) or "nothing"
            raise RetrieverError(
                f"id_field: a document of {framework} has no {id_field!r} in its metadata; it has {known}"
            )
        return metadata[id_field]
    if own is None:
        known = ", ".join(map(str, metadata)) or "nothing"
        raise RetrieverError(
            f"id_field: a document of {framework} has no id; name the metadata that hold it; it has {known}"
        )
    return own


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

    def clashes(self) -> Iterator[Clash]:
        """A target is a module and a name in it."""
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", self.target):
            yield Clash("target", f"expected module:name, found {self.target!r}")


def made(setting: base.Setting, options: Options) -> base.Retriever:
    """The retriever that the target is, or makes."""
    module_name, _, name = options.target.partition(":")
    target: Any = sys.modules[module_name]
    for part in name.split("."):
        target = getattr(target, part)
    if inspect.isroutine(target) and "queries" in _parameters(target):
        if options.options:
            raise RetrieverError(f"options: {options.target} is ready to use, so it takes none")
        return _Function(target)
    if isinstance(target, type) or inspect.isroutine(target):
        keywords = dict(options.options)
        if "corpus" in _parameters(target):
            if not len(setting.corpus):
                raise RetrieverError(f"{options.target} takes a corpus, but the data set has none")
            keywords["corpus"] = setting.corpus
        target = target(**keywords)
    elif options.options:
        raise RetrieverError(f"options: {options.target} is neither a function nor a class, so it takes none")
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


PLUGIN = RetrieverPlugin(
    Options,
    made,
    summary="A function or class of yours, or a retriever of LangChain, LlamaIndex or Haystack.",
    corpus=False,
    runs_code=True,
    live=True,
)
