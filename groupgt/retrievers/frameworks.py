"""Retrievers of LangChain, LlamaIndex and Haystack, each by its own protocol. None of them is imported here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from groupgt.errors import RetrieverError
from groupgt.retrievers import base

__all__ = ["adapted"]


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
