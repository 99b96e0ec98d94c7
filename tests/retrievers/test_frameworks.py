"""`use: python` with retrievers of LangChain, LlamaIndex and Haystack themselves, where they are installed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import groupgt
from groupgt.retrievers.base import Corpus, Ranking, Setting, checked, warn_of_doubts
from groupgt.retrievers.python import Options, adapted, made

DOCUMENTS = {f"d{number}": f"ferry {number}" + " fares" * number for number in range(12)}
QUESTIONS = ["fares", "ferry 3"]
ABSENT = "{} is not installed, and is no extra of groupgt"


def module(name: str, package: str) -> Any:
    """A module of a framework, with the warnings of its import left to its makers."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    os.environ["LANGCHAIN_TRACING_V2"] = "false"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name, reason=ABSENT.format(package))


@pytest.fixture(autouse=True)
def their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", groupgt.GroupgtWarning)
        yield


def ranked(target: Any, k: int, id_field: str = "") -> list[Ranking]:
    """What the adapter makes of an object, checked as the host does."""
    found = adapted(target, id_field)
    assert found is not None
    rankings = list(found.retrieve(QUESTIONS, k))
    checked("mine", ["q1", "q2"], rankings, k)
    return rankings


def ids(ranking: Ranking) -> list[Any]:
    return [each[0] if isinstance(each, list) else each for each in ranking]


# ---- LangChain ---------------------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Any:
    vectorstores = module("langchain_core.vectorstores", "langchain-core")
    embeddings = module("langchain_core.embeddings", "langchain-core")
    found = vectorstores.InMemoryVectorStore(embeddings.DeterministicFakeEmbedding(size=8))
    metadata = [{"doc": name.upper(), "number": number} for number, name in enumerate(DOCUMENTS)]
    found.add_texts(list(DOCUMENTS.values()), metadatas=metadata, ids=list(DOCUMENTS))
    return found


def test_langchain_vector_store(store: Any) -> None:
    target = store.as_retriever(search_kwargs={"k": 10})
    expected = [[document.id for document in store.similarity_search(text, k=10)] for text in QUESTIONS]
    assert ranked(target, 10) == expected
    assert ranked(target, 3) == [each[:3] for each in expected]
    assert ranked(target, 3, "doc") == [[name.upper() for name in each[:3]] for each in expected]
    assert ranked(target, 3, "number") == [[int(name[1:]) for name in each[:3]] for each in expected]
    with pytest.raises(
        groupgt.RetrieverError,
        match="a LangChain document has no 'x' in its metadata; its metadata contains doc, number",
    ):
        ranked(target, 3, "x")


def test_langchain_keeps_its_own_k_and_groupgt_says_so(store: Any) -> None:
    found = adapted(store.as_retriever(), "")  # four, unless it is told otherwise
    assert found is not None
    qids = [f"q{number}" for number in range(6)]
    answers = checked("mine", qids, found.retrieve(["ferry"] * 6, 10), 10)
    with pytest.warns(groupgt.GroupgtWarning, match="exactly 4 results for every query, but 10 were asked for"):
        warn_of_doubts("mine", answers, 10)


def test_langchain_retriever_of_ones_own() -> None:
    retrievers = module("langchain_core.retrievers", "langchain-core")
    documents = module("langchain_core.documents", "langchain-core")

    class Own(retrievers.BaseRetriever):  # type: ignore[misc,name-defined]
        reverse: bool = False

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            names = sorted(DOCUMENTS, reverse=self.reverse)
            return [documents.Document(page_content=DOCUMENTS[name], metadata={"source": name}) for name in names]

    assert ranked(Own(), 3, "source") == [["d0", "d1", "d10"]] * 2
    assert ranked(Own(reverse=True), 1, "source") == [["d9"]] * 2
    with pytest.raises(
        groupgt.RetrieverError, match=r"a LangChain document has no id; .* its metadata contains source"
    ):
        ranked(Own(), 3)


def test_langchain_runnables_that_wrap_a_retriever(store: Any) -> None:
    assert ids(ranked(store.as_retriever().with_retry(), 2)[0]) == ids(ranked(store.as_retriever(), 2)[0])


# ---- LlamaIndex --------------------------------------------------------------------------------------------------


def test_llama_index_vector_index() -> None:
    core = module("llama_index.core", "llama-index-core")
    schema = module("llama_index.core.schema", "llama-index-core")
    mock = module("llama_index.core.embeddings.mock_embed_model", "llama-index-core")
    nodes = [schema.TextNode(id_=name, text=text, metadata={"doc": name[:2]}) for name, text in DOCUMENTS.items()]
    index = core.VectorStoreIndex(nodes=nodes, embed_model=mock.MockEmbedding(embed_dim=4))
    target = index.as_retriever(similarity_top_k=12)
    found = ranked(target, 5)
    assert [len(ranking) for ranking in found] == [5, 5]
    assert all(isinstance(score, float) for _, score in found[0])
    assert ids(found[0]) == [node.node.node_id for node in target.retrieve("fares")][:5]
    assert set(ids(ranked(target, 12, "doc")[0])) == {name[:2] for name in DOCUMENTS}
    assert [len(ranking) for ranking in ranked(index.as_retriever(), 5)] == [2, 2]  # the number it holds


def test_llama_index_retriever_of_ones_own() -> None:
    base = module("llama_index.core.retrievers", "llama-index-core")
    schema = module("llama_index.core.schema", "llama-index-core")

    class Own(base.BaseRetriever):  # type: ignore[misc,name-defined]
        def _retrieve(self, query_bundle: Any) -> list[Any]:
            scored = [
                (text.count("fares"), name) for name, text in DOCUMENTS.items() if "fares" in query_bundle.query_str
            ]
            nodes = [(count, schema.TextNode(id_=name, text="")) for count, name in sorted(scored, reverse=True)]
            return [schema.NodeWithScore(node=node, score=count) for count, node in nodes]

    assert ranked(Own(), 2) == [[["d11", 11.0], ["d10", 10.0]], []]
    # a class is made first; its options are its keywords
    assert made(Setting(Corpus([], [])), options_of(Own)).retrieve(["fares"], 1) == [[["d11", 11.0]]]


def options_of(target: type) -> Options:
    """Options that name a class, as though a file had."""
    globals()["Target"] = target
    return Options(f"{__name__}:Target")


# ---- Haystack ----------------------------------------------------------------------------------------------------


@pytest.fixture
def documents() -> Any:
    haystack = module("haystack", "haystack-ai")
    stores = module("haystack.document_stores.in_memory", "haystack-ai")
    found = stores.InMemoryDocumentStore()
    found.write_documents(
        [haystack.Document(id=name, content=text, meta={"doc": name.upper()}) for name, text in DOCUMENTS.items()]
    )
    return found


def test_haystack_bm25(documents: Any) -> None:
    retrievers = module("haystack.components.retrievers.in_memory", "haystack-ai")
    target = retrievers.InMemoryBM25Retriever(documents, top_k=2)
    expected = target.run(query="fares", top_k=8)["documents"]
    found = ranked(target, 8)[0]  # it is told k
    assert found == [[document.id, document.score] for document in expected]
    assert len(found) == 8
    assert ids(ranked(target, 3, "doc")[0]) == [document.id.upper() for document in expected[:3]]


def test_haystack_component_of_ones_own_without_top_k() -> None:
    haystack = module("haystack", "haystack-ai")

    @haystack.component
    class Own:
        @haystack.component.output_types(documents=list)
        def run(self, query: str) -> dict[str, Any]:
            return {"documents": [haystack.Document(id=name, content="") for name in DOCUMENTS]}

    assert ranked(Own(), 3) == [["d0", "d1", "d2"]] * 2


def test_haystack_component_that_takes_no_text(documents: Any) -> None:
    retrievers = module("haystack.components.retrievers.in_memory", "haystack-ai")
    with pytest.raises(groupgt.RetrieverError, match="Haystack's InMemoryEmbeddingRetriever takes no query; it takes"):
        ranked(retrievers.InMemoryEmbeddingRetriever(documents), 3)
