"""`use: command`: programs that answer line by line, or once per query, and every way to give no answer."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.experiment.plan import plan
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Corpus, Queries, Setting
from groupgt.retrievers.command import Command, Options
from tests.retrievers.small import small

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
PYTHON = [sys.executable, "-I", "-S", "-c"]
# A program that reads queries and writes what `ANSWER`, an expression of query and k, gives for each.
LOOP = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    query, k = request["query"], request["k"]
    print(ANSWER, flush=True)
"""


def program(answer: str) -> list[str]:
    return [*PYTHON, LOOP.replace("ANSWER", answer)]


def ask(command: list[str], queries: list[str], folder: Path = Path(), k: int = 5, **options: Any) -> list[Any]:
    ids = [f"q{number}" for number in range(1, len(queries) + 1)]
    with closing(Command(Setting(Corpus([], []), folder=folder), Options(command, **options))) as retriever:
        return retriever.retrieve(Queries(queries, ids), k)


def fault(command: list[str], queries: tuple[str, ...] = ("one", "two"), **options: Any) -> str:
    with pytest.raises(groupgt.RetrieverError) as error:
        ask(command, list(queries), **{"timeout": 5.0} | options)
    assert "\n" not in str(error.value)
    return str(error.value)


# ---- right answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("json.dumps([query, 'b'])", ["naïve\n?", "b"]),
        ("json.dumps({'results': [[query, 0.5]], 'took': 3})", [["naïve\n?", 0.5]]),
        ("json.dumps([{'id': query, 'score': k}])", [("naïve\n?", 5)]),
        ("'[]'", []),
    ],
)
def test_a_program_that_answers_line_by_line(answer: str, expected: list[Any]) -> None:
    assert ask(program(answer), ["naïve\n?", "naïve\n?"]) == [expected, expected]


def test_it_is_started_once_for_all_queries() -> None:
    one, two = ask(program("json.dumps([os.getpid()])"), ["one", "two"])
    assert one == two


def test_a_program_that_is_started_for_each_query() -> None:
    written = "import json, os, sys; print(json.dumps([sys.argv[1], sys.argv[2], os.getpid()]))"
    (query, options, pid), (_, _, other) = ask([*PYTHON, written, "{query}", "--top={k}"], ["what is {k}?", "two"])
    assert (query, options) == ("what is {k}?", "--top=5")
    assert pid != other


def test_fields_of_other_names() -> None:
    found = ask(program("json.dumps([{'doc': 'a', 'rel': 2}])"), ["one"], id_field="doc", score_field="rel")
    assert found == [[("a", 2)]]


def test_it_runs_in_the_folder_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("print('[\"here\"]')")
    assert ask([sys.executable, "mine.py", "{query}"], ["one"], tmp_path) == [["here"]]


# ---- no answers --------------------------------------------------------------------------------------------------


def test_a_program_that_ends_in_the_middle() -> None:
    answer = "'[]' if query == 'one' else sys.stderr.write('first\\n\\nno index\\n') and sys.exit(3)"
    what = "its process ended with exit status 3 before it had answered; its last lines on standard error: "
    assert fault(program(answer)) == f"query 'q2': {what}first | no index"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no signals")
def test_a_program_that_is_killed() -> None:
    assert fault(program("os.kill(os.getpid(), 9)")).startswith(
        "query 'q1': its process was terminated by SIGKILL; it "
    )


@pytest.mark.parametrize("argument", ["", "{query}"])
def test_a_program_that_is_slow(argument: str) -> None:
    waits = "import sys, threading; sys.stderr.write('loading\\n'); sys.stderr.flush(); threading.Event().wait()"
    text = fault([*PYTHON, waits, argument], timeout=0.3)
    assert text in [f"query 'q1': no answer in 0.3 s{said}" for said in ("", LOADING)]


LOADING = "; its last lines on standard error: loading"


def test_a_program_that_fails_for_a_query() -> None:
    fails = "import sys; sys.exit('no such index')"
    what = "its process ended with exit status 1 before it had answered; its last lines on standard error: "
    assert fault([*PYTHON, fails, "{query}"]) == f"query 'q1': {what}no such index"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("'Loading …'", "expected one line of JSON, found 'Loading …'; write other messages to standard error"),
        ("''", "expected one line of JSON, found ''; write other messages to standard error"),
        ("'{}'", 'expected a list of results, or {"results": […]}, found {}'),
        ("'[{\"doc\": 1}]'", "expected a result with the field 'id' (id_field), found {'doc': 1}"),
    ],
)
def test_nonsense(answer: str, words: str) -> None:
    assert fault(program(answer)) == f"query 'q1': {words}"


def test_a_line_too_many() -> None:
    # The second line is there before the second query is sent, because the first answer is read with it.
    program_that_says_more = [*PYTHON, "print('[]\\n[1]', flush=True); input(); input()"]
    with closing(Command(Setting(Corpus([], [])), Options(program_that_says_more, timeout=5.0))) as retriever:
        retriever.answer("one", 5)
        retriever.lines.put(retriever.lines.get(timeout=5))
        with pytest.raises(groupgt.RetrieverError, match=r"found a second line for the previous query: '\[1\]"):
            retriever.answer("two", 5)


# ---- in an experiment --------------------------------------------------------------------------------------------


def written(folder: Path, command: list[str]) -> Path:
    return small(folder, f"mine: {{use: command, with: {{command: {json.dumps(command)}}}}}")


def test_a_whole_experiment(tmp_path: Path) -> None:
    outcome = run_experiment(written(tmp_path, program("json.dumps(['d2', 'd1'])")), allow_code=True)
    assert outcome.evaluations["set"]["mine"]["recall@1"] == pytest.approx(1 / 3)
    (timing,) = outcome.timings
    assert len(timing.single_ms) == 3


def test_an_error_names_data_set_system_and_query(tmp_path: Path) -> None:
    path = written(tmp_path, program("'[]' if 'dogs' not in query else 5"))
    with pytest.raises(groupgt.RetrieverError, match=r"^dataset 'set': system 'mine': query 'q2': expected a list of "):
        run_experiment(path, allow_code=True)


def test_it_is_refused_unless_code_is_allowed(tmp_path: Path) -> None:
    path = written(tmp_path, ["touch", "ran"])
    with pytest.raises(groupgt.ConfigError, match="command runs your code; allow it with --allow-code"):
        run_experiment(path)
    assert plan(path).unchecked == ["systems.mine.use: command runs your code"]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["no-such-program", "./search.sh"])
def test_a_program_that_does_not_exist_is_told_with_its_place(tmp_path: Path, name: str) -> None:
    words = rf"trial.yaml:6:\d+: systems.mine.with.command: program '{name}' not found, or not executable"
    with pytest.raises(groupgt.ConfigError, match=words):
        plan(written(tmp_path, [name]), allow_code=True)


# ---- examples ----------------------------------------------------------------------------------------------------


def by_words(corpus: Path) -> Iterator[str]:
    """The search of examples/search.mjs as a function of Python."""
    yield "import json, re"
    yield "def words(text): return set(re.findall('[a-z]{4,}', text.lower()))"
    yield f"LINES = open({str(corpus)!r}, encoding='utf-8').read().strip().split('\\n')"
    yield "PASSAGES = [(row['doc_id'], words(row['contents'])) for row in map(json.loads, LINES)]"
    yield "def search(query, k):"
    yield "    scored = [(name, len(has & words(query))) for name, has in PASSAGES]"
    yield "    return sorted(scored, key=lambda pair: -pair[1])[:k]"


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node")
def test_the_example_in_node_equals_the_same_search_in_python(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "handbook", tmp_path / "handbook")
    shutil.copy(EXAMPLES / "search.mjs", tmp_path)
    (tmp_path / "mine.py").write_text("\n".join(by_words(tmp_path / "handbook" / "corpus.jsonl")))
    text = (EXAMPLES / "programs.yaml").read_text(encoding="utf-8").replace("../results", "results")
    text = text.replace("bm25: bm25", 'python: {use: python, with: {target: "mine:search"}}')
    (tmp_path / "trial.yaml").write_text(text, encoding="utf-8")
    outcome = run_experiment(tmp_path / "trial.yaml", allow_code=True, only=["python", "node"])
    python_answers, node_answers = (outcome.answers["handbook", name] for name in ("python", "node"))
    assert len(node_answers.ids) == 88
    assert (node_answers.ids, node_answers.scores) == (python_answers.ids, python_answers.scores)
    assert outcome.evaluations["handbook"]["node"].means == outcome.evaluations["handbook"]["python"].means


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="there is no bash")
def test_the_example_in_bash() -> None:
    command = ["bash", "search.sh", "{query}", "{k}"]
    (found,) = ask(command, ["Can a flex ticket be refunded?"], EXAMPLES, k=3)
    assert len(found) == 3
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert ask(command, ["why"], EXAMPLES) == [[]]
