"""The code labeller lets a user-supplied function, with or without an LLM, decide which results hit."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutine
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt, Le

from groupgt.errors import DataError, Faults, display
from groupgt.labellers.base import Matches, Results, Table, matches_of, pairs_of
from groupgt.labellers.likeness import Reader
from groupgt.model.ground_truth import GroundTruth
from groupgt.model.validity import finite_number
from groupgt.model.values import TEXT, kind_of
from groupgt.options import Clash, Doc, Rule
from groupgt.plugins import Plugin
from groupgt.runtime import raised, users_code


@dataclass(frozen=True)
class Pair:
    """A result and an alternative. The user's function decides whether their contents are the same.

    `query` is the text of the query `qid`; `alternative` and `result` are ids (or the names of spans or texts), with
    the texts in `alternative_text` and `result_text`. A missing text is None.
    """

    qid: str
    query: str | None
    alternative: str
    alternative_text: str | None
    result: str
    result_text: str | None


def _is_target(value: Any) -> bool:
    return callable(value) or (isinstance(value, str) and all(value.partition(":")))


@dataclass(frozen=True)
class Options:
    """Decision function and text sources. The function is your code and requires --allow-code.

    Results with the same text are judged only once per run.
    """

    target: Annotated[
        Any,
        Rule("module:function", _is_target, {"type": "string", "pattern": ".:."}),
        Doc(
            "The function, as module:function. It takes a list of pairs and returns True, False or a number from 0 to "
            "1 for each."
        ),
    ] = ""
    batch_size: Annotated[int, Ge(1), Le(1_000_000), Doc("Maximum number of pairs per call.")] = 32
    threshold: Annotated[float, Gt(0), Le(1), Doc("Smallest number that counts as a hit.")] = 0.5
    version: Annotated[
        str,
        Doc(
            "Version of your code. groupgt reuses verdicts of earlier runs with this version, so change it when you "
            "change the prompt, the model or the code."
        ),
    ] = ""
    corpus: Annotated[Table, Doc("Passage text for results that have no text.")] = ""
    reference: Annotated[Table, Doc("Passage text for alternatives that are ids.")] = ""

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if there is no function."""
        if not _is_target(self.target):
            yield Clash("target", f"expected module:function, found {self.target!r}")


class Code(Reader):
    """A result hits an alternative if your function says so. Exceptions and missing answers are errors."""

    name = "code"
    described = frozenset({"target", "threshold", "version"})
    decides_nothing = frozenset({"batch_size"})

    def __init__(self, options: Options, inputs: Any) -> None:
        self.function = inputs.function(options.target)
        super().__init__(options, inputs)
        self.title = options.target if isinstance(options.target, str) else getattr(options.target, "__name__", "code")
        judge = json.dumps(["code", self.title, options.version])
        self.kept: Any = inputs.verdicts(judge, vouched=bool(options.version))
        self.seconds = 0.0

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """Call the function in batches for every result and alternative of a query. Judge each pair only once."""
        query, keys = results.queries, results.names
        result, alternative = pairs_of(truth, query)
        pairs = []
        for place, number in zip(result.tolist(), alternative.tolist()):
            name = truth.ids[number]
            form = truth.forms[number] if truth.forms else None
            alternative_text = name if form == TEXT else self.reference.get(name) if kind_of(form) == "id" else None
            text = results.texts[place]
            result_text = self.corpus.get(keys[place]) if text is None else text
            asker = int(query[place])
            query_text = truth.texts[asker] if truth.texts else None
            pairs.append(Pair(truth.qids[asker], query_text, name, alternative_text, keys[place], result_text))
        digests = [_digest(pair) for pair in pairs]
        verdicts = dict(self.kept.available(digests))
        unjudged: dict[str, Pair] = {}
        for digest, pair in zip(digests, pairs):
            if digest not in verdicts:
                unjudged.setdefault(digest, pair)
        if unjudged:
            self.kept.prepare()
        waiting = list(unjudged)
        for start in range(0, len(waiting), self.options.batch_size):
            batch = waiting[start : start + self.options.batch_size]
            judged = dict(zip(batch, self._judged([unjudged[digest] for digest in batch])))
            # Save each batch, so that paid verdicts survive later failures.
            self.kept.keep(judged)
            verdicts.update(judged)
        score = np.fromiter((verdicts[digest] for digest in digests), np.float64, len(digests))
        hits = score >= self.options.threshold
        return matches_of(truth, query, keys, result[hits], alternative[hits])

    def _judged(self, batch: Sequence[Pair]) -> list[float]:
        where = f"labeller code: {self.title}"
        first = f"(first pair: query {batch[0].qid!r}, result {display(batch[0].result)})"
        start = time.perf_counter()
        try:
            with users_code():
                returned = self.function(list(batch))
                if iscoroutine(returned):
                    returned.close()
                    raise TypeError("it is async; wrap it in a plain function that runs it with asyncio.run")
                answers = list(returned)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # any exception of the user's function, including sys.exit
            raise DataError(f"{where} failed on a batch of {len(batch):,} pairs {first}: {raised(error)}") from None
        finally:
            self.seconds += time.perf_counter() - start
        is_list = not isinstance(returned, (str, Mapping))
        if not is_list or len(answers) != len(batch):
            returned_text = f"{len(answers):,}" if is_list else display(returned)
            raise DataError(f"{where}: expected {len(batch):,} verdicts, one per pair, found {returned_text} {first}")
        faults = Faults()
        verdicts = []
        for pair, answer in zip(batch, answers):
            verdict = float(answer) if isinstance(answer, (bool, np.bool_)) else finite_number(answer)
            if verdict is None or not 0 <= verdict <= 1:
                place = f"{where}: query {pair.qid!r}, result {display(pair.result)}"
                faults.add(place, f"expected True, False or a number from 0 to 1, found {display(answer)}")
                continue
            verdicts.append(verdict)
        faults.stop(DataError)
        return verdicts

    def description(self) -> str:
        """Describe the function with its threshold and version."""
        version = f", version {self.options.version}" if self.options.version else ""
        return f"{self.title} ≥ {self.options.threshold:g}{version}"


def _digest(pair: Pair) -> str:
    """Return a hash of a pair's texts or, if texts are missing, its ids."""
    alternative = ["id", pair.alternative] if pair.alternative_text is None else ["text", pair.alternative_text]
    result = ["id", pair.result] if pair.result_text is None else ["text", pair.result_text]
    query = pair.query if pair.query is not None else ["qid", pair.qid]
    content = json.dumps([query, alternative, result], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


PLUGIN = Plugin(Options, Code, runs_code=True)
