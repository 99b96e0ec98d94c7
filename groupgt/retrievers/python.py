"""Runs custom retrievers, which are functions, objects, or retrievers from LangChain, LlamaIndex or Haystack."""

from __future__ import annotations

import inspect
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any

from groupgt.errors import ConfigError, RetrieverError
from groupgt.model.documents import result_of
from groupgt.model.policy import Policy
from groupgt.model.ranking import places_in_order
from groupgt.model.validity import finite_number, number_of
from groupgt.options import Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import RetrieverPlugin


def adapted(target: Any, id_field: str, send: Sequence[str] = ()) -> Called | None:
    """Wrap a framework's retriever, which takes the `send` columns as keywords. Return None for other objects."""
    families = {base_class.__module__.split(".")[0] for base_class in type(target).__mro__}
    if families & {"llama_index", "llama_index_core"} and hasattr(target, "retrieve"):
        framework, search = "LlamaIndex", _llama_index
    elif families & {"langchain_core", "langchain", "langchain_community"} and hasattr(target, "invoke"):
        framework, search = "LangChain", _langchain
    elif hasattr(target, "__haystack_input__") and hasattr(target, "run"):
        framework, search = "Haystack", _haystack
    else:
        return None

    def ranking(query: str, k: int, **sent: Any) -> base.Ranking:
        """Return at most k (id, score) pairs if every result has a score, otherwise ids. Only Haystack receives k."""
        documents = islice(search(target, query, k, **sent), k)
        results = [(_id(metadata, doc_id, id_field, framework), score) for metadata, doc_id, score in documents]
        return results if all(score is not None for _, score in results) else [name for name, _ in results]

    return Called(ranking, is_single=True, sends=send)


# (metadata, id, score) of each document.
_Documents = Iterator[tuple[Mapping[str, Any], Any, Any]]


def _langchain(target: Any, query: str, k: int, **sent: Any) -> _Documents:
    return ((document.metadata, getattr(document, "id", None), None) for document in target.invoke(query, **sent))


def _llama_index(target: Any, query: str, k: int, **sent: Any) -> _Documents:
    return ((result.node.metadata, result.node.node_id, result.score) for result in target.retrieve(query, **sent))


def _haystack(target: Any, query: str, k: int, **sent: Any) -> _Documents:
    parameters = inspect.signature(target.run).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if not takes_any and "query" not in parameters:
        names = ", ".join(parameters) or "nothing"
        raise RetrieverError(f"Haystack's {type(target).__name__} takes no query; it takes {names}")
    keywords = {"top_k": k} if takes_any or "top_k" in parameters else {}
    documents = target.run(query=query, **keywords, **sent)["documents"]
    return ((document.meta, document.id, document.score) for document in documents)


def _id(metadata: Mapping[str, Any], document_id: Any, id_field: str, framework: str) -> Any:
    if id_field and id_field in metadata:
        return metadata[id_field]
    if not id_field and document_id is not None:
        return document_id
    lacking = f"no {id_field!r} in its metadata" if id_field else "no id; set id_field to the field with the id"
    names = ", ".join(map(str, metadata)) or "nothing"
    raise RetrieverError(f"id_field: a {framework} document has {lacking}; its metadata contains {names}")


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: python`, which runs code and requires --allow-code.

    A factory is called with the `corpus` (`ids` and `texts`) and with `options`. A factory with an `options` parameter
    gets one mapping; any other factory gets keyword arguments. The factory returns the retriever, which is a function,
    an object with `retrieve(queries, k)`, or a retriever from LangChain, LlamaIndex or Haystack. Any other function,
    sync or async, is called with positional arguments, as `f(queries, k)` with a list, or as `f(query, k)`. Further
    parameters without a default must be named after columns of the ground truth, or `qid`, and receive the query's
    value (in a call with a list, a list of values). Every run calls the code, in a separate process. With a `version`
    next to `use`, results from that version are reused.
    """

    target: Annotated[str, Doc("The callable, as module:name. The module may be next to the experiment file.")]
    options: Annotated[dict[str, Any], Doc("Options passed to a factory.")] = field(default_factory=dict)
    factory: Annotated[
        bool | None,
        Doc("Whether the target is a factory (default: true if it is a class or has a corpus or options parameter)."),
    ] = None
    each: Annotated[
        bool | None,
        Doc(
            "Whether a function takes one query per call (default: true if its first parameter is annotated str or "
            "named query, question, q, text or prompt)."
        ),
    ] = None
    send: Annotated[
        list[str],
        Doc("Columns to pass to parameters that have a default. Other parameters always receive their column."),
    ] = field(default_factory=list)
    id_field: Annotated[str, Doc("Metadata field with the id of a LangChain, LlamaIndex or Haystack document.")] = ""

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if the target is not of the form module:name."""
        if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", self.target):
            yield Clash("target", f"expected module:name, found {self.target!r}")

    def asks_singly(self) -> bool | None:
        return self.each

    def way(self, target: Any) -> tuple[str, Sequence[str]]:
        """Describe how a target is called, and return the columns that are certain to be passed."""
        if _is_factory(target, self.factory):
            _keywords(target, self)
            way = f"factory {signature_of(target)}" + ("" if self.each is None else f", {way_of(self.each)}")
            return way, self.send
        called = _called(target, self)
        return called.way, called.sends

    def is_single(self, function: Callable[..., Any]) -> bool:
        """Return whether a function takes one query per call, as set or as its first parameter suggests."""
        return self.each if self.each is not None else bool(_single_parameter(function))


# Names of a first parameter that takes one query.
ONE = ("query", "question", "q", "text", "prompt")


def _single_parameter(function: Callable[..., Any]) -> str:
    """Return the first parameter if its name or annotation shows that it takes one query, otherwise nothing."""
    first = next(iter(_parameters(function).values()), None)
    if first is None:
        return ""
    is_one = first.name in ONE if first.annotation is first.empty else first.annotation in (str, "str")
    return str(first) if is_one else ""


def way_of(is_single: bool, sends: Sequence[str] = ()) -> str:
    """Describe how a function is called."""
    first, each = ("query", "one query") if is_single else ("queries", "a list of queries")
    return f"f({', '.join([first, 'k', *sends])}), {each} at a time"


def made(setting: base.Setting, options: Options) -> base.Retriever:
    """Build the retriever from the target, calling it first if it is a factory."""
    module_name, _, name = options.target.partition(":")
    target: Any = sys.modules[module_name]
    for part in name.split("."):
        target = getattr(target, part)
    run = _Runner()
    if _is_factory(target, options.factory):
        target = run(lambda: target_of(target, setting, options))
    elif options.options:
        raise RetrieverError(
            f"options: {options.target} is not a factory, so it takes no options; expected a function with a corpus or "
            f"options parameter, or factory: true, found {signature_of(target)}"
        )
    called = _called(target, options, run)
    called.ascending, called.policy = setting.ascending, setting.policy
    return called


def target_of(factory: Any, setting: base.Setting, options: Options) -> Any:
    """Call a factory and return its result."""
    keywords = _keywords(factory, options)
    if "corpus" in _parameters(factory):
        if not len(setting.corpus):
            raise RetrieverError(f"{options.target} takes a corpus, but the data set has no corpus")
        keywords["corpus"] = setting.corpus
    return factory(**keywords)


def _keywords(factory: Any, options: Options) -> dict[str, Any]:
    """Return the arguments of a factory, with None for the corpus, or raise an error if they do not fit."""
    parameters, values = _parameters(factory), dict(options.options)
    keywords: dict[str, Any] = {"options": values} if "options" in parameters else values
    if "corpus" in parameters:
        keywords["corpus"] = None
    if mismatch := _mismatch(factory, **keywords):
        call = f"{options.target}({', '.join(keywords)})"
        what = f"expected a factory that can be called as {call}, found {signature_of(factory)}: {mismatch}"
        raise RetrieverError(f"{options.target}: {what}")
    return keywords


def _is_factory(target: Any, is_declared: bool | None) -> bool:
    if not callable(target):
        return False
    if is_declared is not None:
        return is_declared
    if isinstance(target, type):
        return True
    return inspect.isroutine(target) and bool({"corpus", "options"} & set(_parameters(target)))


def _called(target: Any, options: Options, run: _Runner | None = None) -> Called:
    """Wrap the function to call: a framework's retriever, the target's `retrieve` method, or the target itself."""
    if (adapter := adapted(target, options.id_field, options.send)) is not None:
        return adapter
    retrieve = getattr(target, "retrieve", None)
    if retrieve is not None and not inspect.isroutine(target):
        function: Callable[..., Any] = retrieve
    elif callable(target) and not isinstance(target, type):
        function = target
    else:
        raise RetrieverError(
            f"{options.target}: expected an object with retrieve(queries, k), a function, or a retriever from "
            f"LangChain, LlamaIndex or Haystack, found {type(target).__name__}"
        )
    if _mismatch(function, None, 1, **dict.fromkeys(_columns(function))):
        hint = "" if options.factory else "; set factory: true if it returns the retriever"
        what = f"expected f(queries, k) or f(query, k), called by position, found {signature_of(function)}{hint}"
        raise RetrieverError(f"{options.target}: {what}")
    sends = list(dict.fromkeys([*_columns(function), *options.send]))
    if mismatch := _mismatch(function, None, 1, **dict.fromkeys(sends)):
        raise ConfigError(f"send: {signature_of(function)} {mismatch}")
    return Called(function, is_single=options.is_single(function), run=run, sends=sends)


def _columns(function: Any) -> list[str]:
    """Return the parameters for columns, which have no default and come after the first two."""
    parameters = _parameters(function).values()
    by_position = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    return [each.name for each in needed if each.default is each.empty and each.name not in by_position[:2]]


def signature_of(function: Any) -> str:
    """Format the signature of a function on one line: `search(query, top=5)`."""
    name = getattr(function, "__name__", type(function).__name__)
    signature = _signature(function)
    return f"{name}{signature if signature is not None else '(…)'}"


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _mismatch(function: Any, /, *values: Any, **keywords: Any) -> str:
    """Explain why a function cannot be called with these arguments, or return an empty string if it might work."""
    signature = _signature(function)
    try:
        if signature is not None:
            signature.bind(*values, **keywords)
    except TypeError as error:
        return str(error)
    return ""


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    signature = _signature(function)
    return {} if signature is None else signature.parameters


class _Runner:
    """Runs async calls to completion, all in the same event loop, as server clients require."""

    def __init__(self) -> None:
        self.runner: Any = None

    def __call__(self, function: Callable[[], Any]) -> Any:
        value = function()
        if not inspect.isawaitable(value):
            return value
        import asyncio

        if self.runner is None:
            self.runner = asyncio.Runner()
            weakref.finalize(self, self.runner.close)

        async def awaited() -> Any:
            return await value

        return self.runner.run(awaited())


class Called:
    """A retriever that calls a function with one query (`each`) or a list, and with the columns that it `sends`."""

    def __init__(
        self, function: Callable[..., Any], *, is_single: bool, run: _Runner | None = None, sends: Sequence[str] = ()
    ) -> None:
        self.function, self.each, self.run, self.sends = function, is_single, run or _Runner(), sends
        self.ascending, self.policy = False, Policy()
        self.spent: list[float] = []
        self.way = way_of(is_single, sends)

    def retrieve(self, queries: Sequence[str], k: int) -> Sequence[base.Ranking]:
        """Call the function and convert its output to lists of ids or (id, score) pairs."""
        self.spent = []
        if self.each:
            return [self._one_ranking(query, k, **sent) for query, sent in zip(queries, base.rows_of(queries))]
        texts, qids = list(queries), list(getattr(queries, "ids", []))
        rankings = self._call(queries, k, **base.columns_of(queries))
        if isinstance(rankings, dict):
            names = qids if set(rankings) == set(qids) else texts
            if set(rankings) != set(names):
                raise RetrieverError(
                    f"{signature_of(self.function)}: expected a list of rankings, or a dict that maps each query's "
                    f"text or id to a ranking, found a dict with the key {next(iter(rankings), None)!r}; {ONE_EACH}"
                )
            rankings = [rankings[name] for name in names]
        # Rows of an array keep its type, which describes their contents.
        rankings = list(rankings) if hasattr(rankings, "ndim") and rankings.ndim else base.as_list(rankings)
        if isinstance(rankings, list) and len(rankings) != len(texts):
            what = f"expected {len(texts):,} rankings, one per query, found {len(rankings):,}; {ONE_EACH}"
            raise RetrieverError(f"{signature_of(self.function)}: {what}")
        return list(map(self._ranking_of, rankings)) if isinstance(rankings, list) else rankings

    def _ranking_of(self, answer: Any) -> Any:
        return ranking_of(answer, self.policy, ascending=self.ascending)

    def _one_ranking(self, query: str, k: int, **sent: Any) -> Any:
        ranking = self._ranking_of(self._call(query, k, **sent))
        cells = ranking if isinstance(ranking, list) else []
        if any(isinstance(cell, (list, tuple)) and _is_ranking(cell) for cell in cells):
            parameter = _single_parameter(self.function)
            why = f", because its first parameter is `{parameter}`" if parameter else ""
            raise RetrieverError(
                f"{signature_of(self.function)}: expected one ranking, found a list of rankings; your function was "
                f"called once per query{why}; return one ranking, or set each: false"
            )
        return ranking

    def _call(self, argument: Any, k: int, /, **sent: Any) -> Any:
        start = time.perf_counter()
        answer = self.run(lambda: self.function(argument, k, **sent))
        self.spent.append(1000 * (time.perf_counter() - start))
        return answer


def _is_ranking(cell: Sequence[Any]) -> bool:
    """Return whether a result is itself a ranking, which is a list of ids or of pairs, not an (id, score) pair."""
    if [isinstance(part, str) and number_of(part) is not None for part in cell] == [False, True]:
        return False  # its score is text, which is reported
    return any(isinstance(part, (list, tuple)) for part in cell) or all(isinstance(part, str) for part in cell)


ONE_EACH = "if it answers one query at a time, set each: true"


def ranking_of(answer: Any, policy: Policy, *, ascending: bool = False) -> Any:
    """Convert a ranking to a list. {id: score} is sorted best first, and (ids, scores) becomes a list of pairs."""
    if base.is_reply(answer):
        return {**answer, "results": ranking_of(answer["results"], policy, ascending=ascending)}
    if isinstance(answer, dict):
        scores = [score for score in map(finite_number, answer.values()) if score is not None]
        if len(scores) < len(answer):
            are_scores = not any(isinstance(score, (list, dict)) for score in answer.values())
            return [{"id": name, "score": score} for name, score in answer.items()] if are_scores else answer
        pairs, sign = list(zip(answer, scores)), -1 if ascending else 1
        return [pairs[place] for place in places_in_order(list(map(str, answer)), [sign * s for s in scores], policy)]
    if isinstance(answer, tuple) and len(answer) == 2 and not any(isinstance(part, (str, int)) for part in answer):
        ids, scores = map(base.as_list, answer)
        if isinstance(ids, list) and isinstance(scores, list) and len(ids) == len(scores):
            are_ids = not any(isinstance(name, (list, tuple, dict, float)) for name in ids)
            if are_ids and all(isinstance(score, float) for score in scores):
                return list(zip(ids, scores))
    cells = base.as_list(answer)
    if not isinstance(cells, list):
        return answer
    if getattr(getattr(answer, "dtype", None), "kind", "") == "f" and getattr(answer, "ndim", 0) == 2:
        # An array of numbers has one type for ids and scores.
        return [(int(cell[0]) if cell[0].is_integer() else cell[0], *cell[1:]) for cell in cells]
    return [result_of(cell) or base.as_list(cell) for cell in cells]


SUMMARY = "Your function or class, or a retriever from LangChain, LlamaIndex or Haystack."
PLUGIN = RetrieverPlugin(Options, made, summary=SUMMARY, corpus=False, runs_code=True)
