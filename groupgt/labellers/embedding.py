"""The embedding labeller matches a result to an alternative if their vectors are similar enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt, Le
from numpy.typing import NDArray

from groupgt.errors import DataError, display, refuse
from groupgt.labellers.base import Matches, Results, Table, matches_of, pairs_of
from groupgt.labellers.likeness import Reader, alternative_texts, result_texts
from groupgt.model.ground_truth import GroundTruth
from groupgt.options import Called, Clash, Doc, Folder
from groupgt.plugins import Plugin

Vectors = NDArray[np.float64]
BLOCK = 100_000


@dataclass(frozen=True)
class Options:
    """Minimum similarity, and the source of vectors: tables with `doc_id` and `vector`, or a model."""

    threshold: Annotated[float, Called("a cosine"), Gt(0), Le(1), Doc("Minimum cosine similarity for a hit.")] = 0.8
    documents: Annotated[Table, Doc("Vectors of results.")] = ""
    alternatives: Annotated[Table, Doc("Vectors of alternatives, by their id or text.")] = ""
    model: Annotated[Folder, Doc("Sentence-transformers model (folder or name) to embed text without vectors.")] = ""
    corpus: Annotated[Table, Doc("Passage text for the model to embed when results have no text of their own.")] = ""
    reference: Annotated[Table, Doc("Passage text for the model to embed when alternatives are ids.")] = ""
    document_prefix: Annotated[str, Doc("Prefix added to each result before the model embeds it.")] = ""
    alternative_prefix: Annotated[str, Doc("Prefix added to each alternative before the model embeds it.")] = ""

    def clashes(self) -> Iterator[Clash]:
        """Yield an error if vectors are missing and there is no model."""
        for option, vectors in (("documents", self.documents), ("alternatives", self.alternatives)):
            if isinstance(vectors, str) and not vectors and not self.model:
                yield Clash(option, "expected vectors (or a model), found neither", ("model",))


class Embedding(Reader):
    """A result hits an alternative when the cosine of their vectors is at least `threshold`."""

    name = "embedding"
    described = frozenset({"threshold", "model"})

    def __init__(self, options: Options, inputs: Any) -> None:
        self.options = options
        self.documents = None if options.documents == "" else inputs.vectors(options.documents, "documents")
        self.alternatives = None if options.alternatives == "" else inputs.vectors(options.alternatives, "alternatives")
        self.encode = inputs.encoder(options.model) if options.model else None
        if self.documents is None:
            self.corpus = inputs.texts(options.corpus, "corpus")
        if self.alternatives is None:
            self.reference = inputs.texts(options.reference, "reference")
        self.encoded: dict[str, Any] = {}

    def match(self, truth: GroundTruth, results: Results) -> Matches:
        """Compare every result with the alternatives of its query."""
        query, keys = results.queries, results.names
        if self.documents is not None:
            documents = _looked_up(self.documents, keys, "result", "documents")
        else:
            texts = result_texts(truth, query, keys, results.texts, self.corpus, f"the {self.name} labeller")
            documents = self._encoded(texts, self.options.document_prefix)
        if self.alternatives is not None:
            alternatives = _looked_up(self.alternatives, truth.ids, "alternative", "alternatives")
        else:
            alternatives = self._encoded(alternative_texts(truth, self.reference), self.options.alternative_prefix)
        if len(documents) and len(alternatives) and documents.shape[1] != alternatives.shape[1]:
            found = f"found {documents.shape[1]:,} for results and {alternatives.shape[1]:,} for alternatives"
            raise DataError(f"labeller embedding: expected vectors with the same number of dimensions, {found}")
        result, alternative = pairs_of(truth, query)
        cosine = np.zeros(len(result))
        for start in range(0, len(result), BLOCK):
            rows = slice(start, start + BLOCK)
            cosine[rows] = (documents[result[rows]] * alternatives[alternative[rows]]).sum(axis=1)
        near = cosine >= self.options.threshold - 1e-9
        return matches_of(truth, query, keys, result[near], alternative[near])

    def _encoded(self, texts: list[str], prefix: str) -> Vectors:
        texts = [prefix + text for text in texts]
        fresh = [text for text in dict.fromkeys(texts) if text not in self.encoded]
        if fresh and self.encode is not None:
            vectors = np.asarray(self.encode(fresh), dtype=np.float64)
            _refuse_zero(vectors, fresh, f"the model {self.options.model!r}")
            self.encoded.update(zip(fresh, _unit(vectors)))
        return np.array([self.encoded[text] for text in texts]).reshape(len(texts), -1 if texts else 0)

    def description(self) -> str:
        """Describe the minimum cosine and the source of the vectors."""
        source = f"model {self.options.model}" if self.options.model else "vectors from files"
        return f"cosine ≥ {self.options.threshold:g}, {source}"


def _looked_up(vectors: Mapping[str, Any], names: list[str], what: str, option: str) -> Vectors:
    missing = [name for name in dict.fromkeys(names) if name not in vectors]
    refuse((f"{what} {display(name)}", f"has no vector in `{option}`") for name in missing)
    try:
        rows = np.array([vectors[name] for name in names], dtype=np.float64).reshape(len(names), -1 if names else 0)
    except (TypeError, ValueError):
        raise DataError(f"`{option}`: expected vectors (lists of numbers), all of the same length") from None
    if not np.isfinite(rows).all():
        first = names[int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])]
        raise DataError(f"`{option}`: the vector for {display(first)} contains NaN or infinity")
    _refuse_zero(rows, names, f"`{option}`")
    return _unit(rows)


def _refuse_zero(vectors: Vectors, names: list[str], source: str) -> None:
    zero = np.flatnonzero(~vectors.any(axis=1))
    if len(zero):
        name = display(names[int(zero[0])])
        raise DataError(f"{source}: the vector for {name} is all zeros, so its cosine similarity is undefined")


def _unit(vectors: Vectors) -> Vectors:
    # Scale by a power of two first, so that no square overflows or underflows.
    _, exponent = np.frexp(np.abs(vectors).max(axis=1, initial=0.0, keepdims=True))
    vectors = np.ldexp(vectors, -exponent)
    lengths = np.sqrt((vectors * vectors).sum(axis=1, keepdims=True))
    scaled: Vectors = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return scaled


PLUGIN = Plugin(Options, Embedding)
