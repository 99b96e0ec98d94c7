"""`use: python`: everything a target may be, everything it may return, and one line for everything that goes wrong."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import groupgt
from groupgt.cli.main import main
from groupgt.formats.modules import imported
from groupgt.model.policy import Policy
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Answers, Corpus, Queries, Setting, ask, checked
from groupgt.retrievers.python import Options, adapted, made, ranking_of
from tests.retrievers.small import TEXTS, small

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """What a target adds to the interpreter is taken away again."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.split(".")[0] in ("mine", "helper", "deep"):
            del sys.modules[name]


CODE = """
from functools import partial

def answer(queries, k):
    return [["d2", "d1"][:k] for _ in queries]

def build(corpus, last=False):
    ids = list(corpus.ids)[::-1] if last else list(corpus.ids)
    return lambda queries, k: [ids[:k] for _ in queries]

def plain(name="d1"):
    return Found([name])

class Found:
    def __init__(self, names=("d3",)):
        self.names = list(names)

    def retrieve(self, queries, k):
        return [self.names[:k] for _ in queries]

    @classmethod
    def of(cls, name):
        return cls([name])

class Called:
    def __call__(self, queries, k):
        return [["d1"] for _ in queries]

found = Found(["d2"])
called = Called()
bound = found.retrieve
part = partial(answer)
number = 5

def wrong():
    return 5

def mapped(options):
    return Found([options["name"]])

async def later(asked, depth):
    return answer(asked, depth)

async def later_built(corpus):
    return build(corpus)

def raises(queries, k):
    raise ValueError("no\\nluck")
"""


def retriever(folder: Path, target: str, corpus: Corpus | None = None, code: str = CODE, **options: Any) -> Any:
    (folder / "mine.py").write_text(code)
    imported(target, folder)
    return made(Setting(Corpus.of(TEXTS) if corpus is None else corpus), Options(target, **options))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("answer", {}, ["d2", "d1"]),
        ("build", {}, ["d1", "d2"]),
        ("build", {"options": {"last": True}}, ["d3", "d2"]),
        ("plain", {"factory": True}, ["d1"]),
        ("plain", {"factory": True, "options": {"name": "d9"}}, ["d9"]),
        ("mapped", {"options": {"name": "d4"}}, ["d4"]),
        ("later", {}, ["d2", "d1"]),
        ("later_built", {}, ["d1", "d2"]),
        ("Found", {}, ["d3"]),
        ("Found", {"options": {"names": ["d7", "d8"]}}, ["d7", "d8"]),
        ("Found.of", {"factory": True, "options": {"name": "d5"}}, ["d5"]),
        ("found", {}, ["d2"]),
        ("found.retrieve", {}, ["d2"]),
        ("bound", {}, ["d2"]),
        ("called", {}, ["d1"]),
        ("part", {}, ["d2", "d1"]),
    ],
)
def test_every_kind_of_target(tmp_path: Path, name: str, options: dict[str, Any], expected: list[str]) -> None:
    found = retriever(tmp_path, f"mine:{name}", **options)
    assert found.retrieve(["one", "two"], 2) == [expected, expected]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("answer", {"options": {"k": 5}}, r"options: mine:answer is not a factory, .* found answer\(queries, k\)"),
        ("found", {"options": {"k": 5}}, "options: mine:found is not a factory"),
        ("build", {"options": {"lst": 1}}, r"called as mine:build\(lst, corpus\), found build\(corpus, last=False\)"),
        ("plain", {}, r"expected f\(queries, k\) or f\(query, k\), .* found plain\(name='d1'\); set factory: true"),
        ("number", {}, r"mine:number: expected an object with retrieve\(queries, k\), a function, .* found int"),
        ("wrong", {"factory": True}, r"mine:wrong: expected an object .* found int"),
    ],
)
def test_targets_that_are_no_retriever(tmp_path: Path, name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.RetrieverError, match=words):
        retriever(tmp_path, f"mine:{name}", **options)


WAYS = """
import numpy as np

ANSWER = {"one": ["d1", "d2"], "two": ["d2"]}

def query(query, k): return ANSWER[query]
def text(text, k): return tuple(ANSWER[text])
def annotated(x: str, k): return np.array(ANSWER[x])
def pairs(q, k): return [(name, 1.0) for name in ANSWER[q]]
def scores(prompt, k): return {"d0": 0.25, **dict.fromkeys(ANSWER[prompt], 0.5)}
def both(question, k): return ANSWER[question], np.linspace(1, 0, len(ANSWER[question]))
def dicts(query, k): return [{"id": name, "score": 1} for name in ANSWER[query]]
def lazily(query, k): return iter(ANSWER[query])
def numbers(query, k): return np.array([[3, 0.5], [4, 0.25]])
async def later(query, k): return ANSWER[query]

def listed(x, k): return [ANSWER[each] for each in x]
def named(query: list[str], k): return listed(query, k)
def by_text(queries, k): return {each: ANSWER[each] for each in queries}
def by_id(queries, k): return dict(zip(queries.ids, listed(queries, k)))
def array(queries, k): return np.array([["d1", "d2"], ["d2", "d3"]])
def generated(queries, k): return (ANSWER[each] for each in queries)

def short(queries, k): return [["d1"]]
def strange(queries, k): return {"three": ["d1"]}
def lists(query, k): return [["d1", "d2"] for _ in query]
def lists_of_pairs(x: str, k): return [[("d1", 0.5)] for _ in x]
"""


@pytest.mark.parametrize(
    ("name", "singly", "expected"),
    [
        ("query", True, [["d1", "d2"], ["d2"]]),
        ("text", True, [["d1", "d2"], ["d2"]]),
        ("annotated", True, [["d1", "d2"], ["d2"]]),
        ("pairs", True, [[["d1", 1.0], ["d2", 1.0]], [["d2", 1.0]]]),
        ("scores", True, [[("d2", 0.5), ("d1", 0.5), ("d0", 0.25)], [("d2", 0.5), ("d0", 0.25)]]),
        ("both", True, [[("d1", 1.0), ("d2", 0.0)], [("d2", 1.0)]]),
        ("dicts", True, [[{"id": "d1", "score": 1}, {"id": "d2", "score": 1}], [{"id": "d2", "score": 1}]]),
        ("lazily", True, [["d1", "d2"], ["d2"]]),
        ("numbers", True, [[(3, 0.5), (4, 0.25)], [(3, 0.5), (4, 0.25)]]),
        ("later", True, [["d1", "d2"], ["d2"]]),
        ("listed", False, [["d1", "d2"], ["d2"]]),
        ("named", False, [["d1", "d2"], ["d2"]]),
        ("by_text", False, [["d1", "d2"], ["d2"]]),
        ("by_id", False, [["d1", "d2"], ["d2"]]),
        ("array", False, [["d1", "d2"], ["d2", "d3"]]),
        ("generated", False, [["d1", "d2"], ["d2"]]),
    ],
)
def test_what_a_function_is_asked_and_what_it_may_return(
    tmp_path: Path, name: str, singly: bool, expected: list[Any]
) -> None:
    found = retriever(tmp_path, f"mine:{name}", code=WAYS)
    assert found.each is singly
    assert found.retrieve(Queries(["one", "two"], ["q1", "q2"]), 2) == expected
    assert len(found.spent) == (2 if singly else 1)


def test_the_file_says_how_a_function_is_asked(tmp_path: Path) -> None:
    assert retriever(tmp_path, "mine:listed", code=WAYS, each=False).way.startswith("f(queries, k)")
    assert retriever(tmp_path, "mine:listed", code=WAYS, each=True).way.startswith("f(query, k)")
    assert retriever(tmp_path, "mine:query", code=WAYS, each=False).each is False
    code = "def search(corpus, k):\n    return [['d1'] for _ in corpus]\n"
    assert retriever(tmp_path, "mine:search", code=code, factory=False).retrieve(["one"], 1) == [["d1"]]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("short", r"short\(queries, k\): expected 2 rankings, one per query, found 1; .* set each: true"),
        ("lists", r"lists\(query, k\): .* called once per query, because its first parameter is `query`; return one "),
        ("lists_of_pairs", "because its first parameter is `x: str`; return one ranking, or set each: false"),
        ("strange", r"strange\(queries, k\): expected a list of rankings, .* found a dict with the key 'three'"),
    ],
)
def test_what_does_not_fit_is_told_with_the_function(tmp_path: Path, name: str, words: str) -> None:
    with pytest.raises(groupgt.RetrieverError, match=words):
        retriever(tmp_path, f"mine:{name}", code=WAYS).retrieve(["one", "two"], 2)


def test_a_target_that_takes_a_corpus_needs_one(tmp_path: Path) -> None:
    with pytest.raises(groupgt.RetrieverError, match="mine:build takes a corpus, but the data set has no corpus"):
        retriever(tmp_path, "mine:build", Corpus([], []))


@pytest.mark.parametrize("target", ["mine", "mine:", ":x", "a b:c", "mine:x()", "mine.py:x", "1a:b"])
def test_targets_of_another_shape(target: str) -> None:
    if target == "mine.py:x":  # a name like any other, of a module that is not there
        assert options_from(Options, {"target": target})
        return
    with pytest.raises(groupgt.ConfigError, match="target: expected module:name, found"):
        options_from(Options, {"target": target})


@pytest.mark.parametrize(
    ("code", "target", "words"),
    [
        ("", "no_such_module:x", "target: module 'no_such_module' is neither next to the file nor installed"),
        (
            "import no_such_helper",
            "mine:x",
            "target: module 'no_such_helper' is neither next to the file nor installed",
        ),
        ("def search(): ...", "mine:saerch", r"target: mine has no 'saerch' \(did you mean 'search'\?\)"),
        ("found = 5", "mine:found.retrieve", "target: mine has no 'retrieve'"),
        ("1 / 0", "mine:x", "target: mine cannot be imported: ZeroDivisionError: division by zero"),
        ("x = (", "mine:x", "target: mine cannot be imported: SyntaxError: '\\(' was never closed"),
        ("raise ValueError('a\\nb')", "mine:x", "target: mine cannot be imported: ValueError: a$"),
        ("raise SystemExit(0)", "mine:x", "target: mine cannot be imported: SystemExit: 0"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, code: str, target: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(code)
    with pytest.raises(groupgt.ConfigError, match=words) as error:
        imported(target, tmp_path)
    assert "\n" not in str(error.value)


def test_modules_in_packages(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("deep/__init__.py", "deep/er/__init__.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "deep" / "er" / "search.py").write_text(CODE)
    assert imported("deep.er.search:found", tmp_path).names == ["d2"]


def test_a_module_of_the_same_name_in_another_folder_is_another(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(f"name = {name!r}")
    assert [imported("mine:name", tmp_path / each) for each in ("a", "b", "a", "a")] == ["a", "b", "a", "a"]


def test_a_module_that_was_changed_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("name = 'sooner'")
    assert imported("mine:name", tmp_path) == "sooner"
    module = sys.modules["mine"]
    imported("mine:name", tmp_path)
    assert sys.modules["mine"] is module
    (tmp_path / "mine.py").write_text("name = 'a good deal later'")
    assert imported("mine:name", tmp_path) == "a good deal later"


# ---- what is returned --------------------------------------------------------------------------------------------

QIDS = ["q1", "q2"]


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "expected a list of rankings, found NoneType"),
        ("ab", "expected a list of rankings, found str"),
        ({"q1": ["a"]}, "expected a list of rankings, found dict"),
        (np.array([["a"], ["b"]]), "expected a list of rankings, found ndarray"),
        ([["a"]], "expected 2 rankings, one per query, found 1"),
        ([["a"], ["b"], ["c"]], "expected 2 rankings, one per query, found 3"),
    ],
)
def test_what_is_no_list_of_rankings(returned: Any, words: str) -> None:
    with pytest.raises(groupgt.RetrieverError) as error:
        checked("mine", QIDS, returned, 2)
    assert str(error.value) == f"system 'mine': {words}"


@pytest.mark.parametrize(
    ("ranking", "words"),
    [
        (None, "expected a list of results, found NoneType"),
        ("ab", "expected a list of results, found str"),
        ({"a": 1.0}, "expected a list of results, found dict"),
        ([("a", float("nan"))], "expected a finite score at rank 1, found nan"),
        ([("a", np.float32("inf"))], "expected a finite score at rank 1, found np.float32(inf)"),
        ([("a", "1")], "expected a finite score at rank 1, found '1'"),
        ([("a", None)], "expected a finite score at rank 1, found None"),
        ([("a", True)], "expected a finite score at rank 1, found True"),
        (["a", 1.5], "expected an id (a string or integer) at rank 2, found 1.5"),
        (["a", None], "expected an id (a string or integer) at rank 2, found None"),
        ([True], "expected an id (a string or integer) at rank 1, found True"),
        ([("a", 1.0, 2.0)], "expected an id (a string or integer) at rank 1, found ('a', 1.0, 2.0)"),
        ([["a"]], "expected an id (a string or integer) at rank 1, found ['a']"),
        (
            [{"url": "a"}, {"url": "b"}],
            "expected results as ids, (id, score) pairs, {id: score}, or mappings with the key id; found mappings with "
            "the keys url",
        ),
        ([{"id": "a", "score": "1"}], "expected a finite score at rank 1, found '1'"),
        ([{"id": ["a"]}], "expected an id (a string or integer) at rank 1, found ['a']"),
        ([" "], "the id at rank 1 is blank"),
        (["a", "b", "c"], "expected at most 2 results, found 3"),
    ],
)
def test_what_is_no_ranking(ranking: Any, words: str) -> None:
    with pytest.raises(groupgt.RetrieverError) as error:
        checked("mine", QIDS, [["a"], ranking], 2)
    assert str(error.value) == f"system 'mine': query 'q2': {words}"


@pytest.mark.parametrize(
    ("ranking", "ids", "scores"),
    [
        (["a", 7], ["a", "7"], None),
        ([{"id": "a"}, {"id": 7, "text": "seven"}], ["a", "7"], None),
        ([{"docid": "a", "score": 2}, {"chunk_id": 7, "text": "seven", "score": 1}], ["a", "7"], [2.0, 1.0]),
        ([{"id": "a", "score": 2}, ("b", 1)], ["a", "b"], [2.0, 1.0]),
        ([("a", 2), ("b", np.float32(0.5))], ["a", "b"], [2.0, 0.5]),
        ((np.str_("a"), np.int64(8)), ["a", "8"], None),
        ([("a", 1.0), "b"], ["a", "b"], None),
        (["a", "a"], ["a", "a"], None),
        ([], [], []),
        ([("a", 0.5), ("b", 2.0)], ["a", "b"], [0.5, 2.0]),  # the order returned is kept
    ],
)
def test_rankings(ranking: Any, ids: list[str], scores: list[float] | None) -> None:
    found = checked("mine", ["q"], [ranking], 2)
    assert found.ids == {"q": ids}
    assert found.scores == (None if scores is None else {"q": scores})
    assert isinstance(found, Answers)


# ---- in an experiment --------------------------------------------------------------------------------------------


def run(folder: Path, target: str, code: str = CODE) -> Any:
    (folder / "mine.py").write_text(code)
    file = small(folder, f'mine: {{use: python, with: {{target: "mine:{target}"}}}}')
    return run_experiment(file, allow_code=True).evaluations["set"]["mine"]


def test_it_runs(tmp_path: Path) -> None:
    assert run(tmp_path, "answer")["recall@1"] == pytest.approx(1 / 3)


def test_code_is_refused_unless_it_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("raise AssertionError('it ran')")
    with pytest.raises(groupgt.ConfigError, match="python runs your code; allow it with --allow-code"):
        run_experiment(small(tmp_path, 'mine: {use: python, with: {target: "mine:answer"}}'))


def test_what_it_raises_is_one_line_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(groupgt.RetrieverError) as error:
        run(tmp_path, "raises")
    line = CODE.splitlines().index('    raise ValueError("no\\nluck")') + 1
    place = re.escape(f"({tmp_path / 'mine.py'}:{line} in raises)")
    assert re.fullmatch(
        rf"dataset 'set': system 'mine': query 'q1' and 2 more: ValueError: no {place}", str(error.value)
    )


def test_the_lines_of_the_users_files_that_led_there_and_all_where_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.py").write_text("import json\n\ndef read(text):\n    return json.loads(text)\n")
    code = "import beside\n\ndef search(query, k):\n    return beside.read('{')\n"
    with pytest.raises(groupgt.RetrieverError) as error:
        run(tmp_path, "search", code)
    frames = (
        rf"\({re.escape(str(tmp_path / 'mine.py'))}:4 in search → {re.escape(str(tmp_path / 'beside.py'))}:4 in read\)"
    )
    assert re.fullmatch(rf"dataset 'set': system 'mine': query 'q1': JSONDecodeError: .* {frames}", str(error.value))
    assert "Traceback" not in capfd.readouterr().err
    monkeypatch.setenv("GROUPGT_TRACEBACK", "1")
    with pytest.raises(groupgt.RetrieverError):
        run(tmp_path, "search", code)
    assert "raw_decode" in capfd.readouterr().err


def test_results_that_differ_in_their_address_alone_are_one_fault(tmp_path: Path) -> None:
    code = "def search(queries, k):\n    return [[object() for _ in range(1)] for _ in queries]\n"
    with pytest.raises(groupgt.RetrieverError, match=r"found <object object at 0x…>") as error:
        run(tmp_path, "search", code)
    assert len(error.value.faults) <= 3


def test_what_a_build_raises_is_one_line_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(
        groupgt.RetrieverError, match=r"^dataset 'set': system 'mine': KeyError: 'x' \(.*mine.py:2 in build\)$"
    ):
        run(tmp_path, "build", "def build(corpus):\n    return {}['x']\n")


# The first a run of its own shows; `checked` is asked about all above.
OTHERS = [pytest.param(value, marks=pytest.mark.property) for value in ("'ab'", "[]", "[None] * len(queries)", "None")]


@pytest.mark.parametrize("value", ["[[1.5]] * len(queries)", *OTHERS])
def test_what_it_returns_is_checked(tmp_path: Path, value: str) -> None:
    with pytest.raises(groupgt.RetrieverError, match=r"dataset 'set': system 'mine': .*expected"):
        run(tmp_path, "answer", f"def answer(queries, k):\n    return {value}\n")


# ---- frameworks, by their protocols ------------------------------------------------------------------------------


def of_module(name: str, module: str, **members: Any) -> Any:
    """An object of a class of that module, and of a class derived from it."""
    parent = type(name, (), {"__module__": module, **members})
    return type("Mine", (parent,), {"__module__": "mine"})()


def langchain_document(name: str | None, **metadata: Any) -> Any:
    return SimpleNamespace(id=name, metadata=metadata, page_content="")


def test_the_protocol_of_langchain() -> None:
    documents = [langchain_document("x", doc="d1"), langchain_document(None, doc=7), langchain_document("z", doc="d3")]
    target = of_module("BaseRetriever", "langchain_core.retrievers", invoke=lambda self, query: documents)
    found = adapted(target, "doc")
    assert found is not None
    assert found.retrieve(["one", "two"], 2) == [["d1", 7], ["d1", 7]]
    bare = adapted(target, "")
    assert bare is not None
    assert bare.retrieve(["one"], 1) == [["x"]]
    with pytest.raises(groupgt.RetrieverError, match=r"a LangChain document has no id; .* its metadata contains doc"):
        bare.retrieve(["one"], 2)
    with pytest.raises(groupgt.RetrieverError, match="has no 'name' in its metadata; its metadata contains doc"):
        adapted(target, "name").retrieve(["one"], 2)  # type: ignore[union-attr]


def test_the_protocol_of_llama_index() -> None:
    def node(name: str, score: float | None, **metadata: Any) -> Any:
        return SimpleNamespace(score=score, node=SimpleNamespace(node_id=name, metadata=metadata))

    found = {"one": [node("a", 0.5), node("b", 0.25)], "two": [node("a", 0.5), node("b", None)], "three": []}
    target = of_module("Base", "llama_index.core.base.base_retriever", retrieve=lambda self, query: found[query])
    own = adapted(target, "")
    assert own is not None
    assert own.retrieve(["one", "two", "three"], 2) == [[["a", 0.5], ["b", 0.25]], ["a", "b"], []]
    with pytest.raises(
        groupgt.RetrieverError, match=r"a LlamaIndex document has no 'doc' .* its metadata contains nothing"
    ):
        adapted(target, "doc").retrieve(["one"], 2)  # type: ignore[union-attr]


def test_the_protocol_of_haystack() -> None:
    def run(self: Any, query: str, top_k: int) -> dict[str, Any]:
        assert top_k == 2
        return {"documents": [SimpleNamespace(id="a", meta={"doc": "d1"}, score=3.0)]}

    target = of_module("Retriever", "anywhere", run=run, __haystack_input__=SimpleNamespace(_sockets_dict={}))
    assert adapted(target, "").retrieve(["one"], 2) == [[["a", 3.0]]]  # type: ignore[union-attr]
    assert adapted(target, "doc").retrieve(["one"], 2) == [[["d1", 3.0]]]  # type: ignore[union-attr]


def test_anything_else_is_of_no_framework() -> None:
    assert adapted(SimpleNamespace(invoke=print, retrieve=print, run=print), "") is None
    assert adapted(of_module("Prompt", "langchain_core.prompts"), "") is None


def test_a_retriever_that_stops_short_is_told(tmp_path: Path) -> None:
    code = "def answer(queries, k):\n    return [['d1', 'd2'] for _ in queries]\n"
    (tmp_path / "mine.py").write_text(code)
    file = small(tmp_path, 'mine: {use: python, with: {target: "mine:answer"}}')
    rows = (tmp_path / "truth.jsonl").read_text()
    (tmp_path / "truth.jsonl").write_text(rows + rows.replace('"qid": "q', '"qid": "r'))
    with pytest.warns(groupgt.GroupgtWarning, match="exactly 2 results for every query, but 3 were asked for"):
        run_experiment(file, allow_code=True)


PRINTING = """
print("while it is imported")

def build(corpus):
    print("while it is built")

    def search(queries, k):
        print("while it answers")
        return [["d1"] for _ in queries]

    return search
"""


def test_what_it_prints_is_no_result(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(PRINTING)
    file = small(tmp_path, 'own: {use: python, with: {target: "mine:build"}}')
    main(["run", str(file), "--allow-code"])
    out, err = capfd.readouterr()
    assert "while it" not in out
    for when in ("is imported", "is built", "answers"):
        assert f"while it {when}\n" in err


SPOILING = """
def build(corpus):
    def search(queries, k):
        answers = [{"q1": ["d1"], "q2": ["d2"], "q3": ["d3"]}[qid] for qid in queries.ids]
        queries.ids.reverse()
        queries.clear()
        return answers

    corpus.ids.reverse()
    corpus.texts.clear()
    return search
"""


def test_what_it_does_to_its_lists_reassigns_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SPOILING)
    systems = 'own: {use: python, with: {target: "mine:build"}}\n  bm25: bm25'
    outcome = run_experiment(small(tmp_path, systems), allow_code=True)
    assert outcome.evaluations["set"]["own"]["recall@1"] == 1.0
    assert outcome.evaluations["set"]["bm25"]["recall@1"] == 1.0


DISTANCES = """
def single(query, k): return {"far": 0.9, "near": 0.1}
def listed(queries, k): return [{"far": 0.9, "near": 0.1} for _ in queries]
def by_text(queries, k): return {each: {"far": 0.9, "near": 0.1} for each in queries}
def replies(queries, k): return [{"results": {"far": 0.9, "near": 0.1}, "cost": 1} for _ in queries]
"""


@pytest.mark.parametrize("name", ["single", "listed", "by_text", "replies"])
def test_a_mapping_of_distances_begins_with_the_nearest(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(DISTANCES)
    imported(f"mine:{name}", tmp_path)
    queries = Queries(["one?", "two?"], ["q1", "q2"])
    for ascending, first in ((True, ["near", "far"]), (False, ["far", "near"])):
        setting = Setting(Corpus([], []), ascending=ascending)
        found = ask("s", made(setting, Options(f"mine:{name}")), queries, 2)[0]
        assert found.ids == {"q1": first, "q2": first}


def test_a_system_of_distances_is_measured_by_them_and_not_cached_as_scores(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(DISTANCES)
    (tmp_path / "t.jsonl").write_text('{"qid": "q1", "query": "x", "retrieval_gt": [["near"]]}\n')
    text = """version: 1
name: e
datasets: {d: {ground_truth: t.jsonl}}
systems: {s: {use: python, version: "1", with: {target: "mine:single"}}}
evaluate: {metrics: [mrr@2], depth: 2, timed: 0}
output: {formats: []}
"""
    reciprocal = []
    for direction in ("descending", "ascending"):
        (tmp_path / "e.yaml").write_text(text.replace('version: "1"', f'version: "1", scores: {direction}'))
        outcome = run_experiment(tmp_path / "e.yaml", allow_code=True)
        reciprocal.append(outcome.evaluations["d"]["s"].means["mrr.autorag@2"])
    assert reciprocal == [0.5, 1.0]


def test_what_a_factory_lacks_is_known_before_it_is_called() -> None:
    def build(corpus: Corpus, tenant: str) -> None:
        raise AssertionError

    with pytest.raises(groupgt.RetrieverError, match="missing a required argument: 'tenant'"):
        Options("mine:build").way(build)
    assert Options("mine:build", {"tenant": "t"}).way(build)[0].startswith("factory build(")


@pytest.mark.parametrize("answer", [[("d1", "0.9"), ("d2", "0.3")], [["d1", "0.9"], ["d2", "0.3"]]])
def test_a_score_that_is_text_is_named(tmp_path: Path, answer: Any) -> None:
    (tmp_path / "mine.py").write_text(f"def single(query, k): return {answer}")
    imported("mine:single", tmp_path)
    single = made(Setting(Corpus([], [])), Options("mine:single"))
    with pytest.raises(groupgt.RetrieverError, match=r"expected a finite score at rank 1, found '0\.9'"):
        ask("s", single, Queries(["one?"], ["q1"]), 2)


@pytest.mark.parametrize(("ties", "expected"), [("id", ["c", "b", "a"]), ("input", ["c", "a", "b"])])
def test_equal_scores_of_a_mapping_follow_the_policy(tmp_path: Path, ties: str, expected: list[str]) -> None:
    """By id, in descending order, `b` ranks above `a`; the function gives `a` first."""
    scores = {"a": 0.5, "c": 1.0, "b": 0.5}
    policy = Policy.of({"ties": ties})
    (tmp_path / "mine.py").write_text(f"def listed(queries, k): return [{scores}]")
    imported("mine:listed", tmp_path)
    retriever = made(Setting(Corpus([], []), policy=policy), Options("mine:listed"))
    found = ask("s", retriever, Queries(["q"], ["q"]), 3)[0]
    assert found.ids == {"q": expected}
    direct = groupgt.evaluate({"q": [["b"]]}, {"q": scores}, ["mrr"], policy=policy)
    run = groupgt.evaluate({"q": [["b"]]}, found.ids, ["mrr"], policy=policy)
    assert direct["mrr"] == run["mrr"] == 1 / (1 + expected.index("b"))


@pytest.mark.parametrize("score", [float("nan"), float("inf"), ".9", None])
def test_an_invalid_score_of_a_mapping_is_named(score: Any) -> None:
    ranking = ranking_of({"a": 1.0, "b": score}, Policy())
    with pytest.raises(groupgt.RetrieverError, match=f"expected a finite score at rank 2, found {score!r}"):
        checked("mine", ["q"], [ranking], 2)
    assert ranking_of({"hits": ["a"]}, Policy()) == {"hits": ["a"]}
