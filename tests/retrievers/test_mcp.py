"""`use: mcp`, against servers written with the official SDK: over standard input and output, and over HTTP."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.experiment.plan import plan
from groupgt.options import options_from
from groupgt.report.run import run_experiment
from groupgt.retrievers.base import Corpus, Queries, Setting
from groupgt.retrievers.mcp import Mcp, Options
from tests.retrievers.small import TEXTS, small

pytest.importorskip("mcp", reason="the extra [mcp] is not installed")
EXAMPLES = Path(__file__).parents[2] / "examples"


def faulty() -> Any:
    """A server whose tools answer rightly, wrongly or never."""
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("faulty")

    @server.tool()
    def objects(query: str, filters: dict[str, int] | None = None) -> dict[str, Any]:
        hits = [{"document": {"id": name}, "rel": 1 / (rank + 1)} for rank, name in enumerate("abc")]
        return {"took": 3, "hits": hits, **({"filters": filters} if filters else {})}

    @server.tool()
    def texts(query: str, top: int = 9) -> str:
        words = set(query.split())
        ranked = sorted(TEXTS.values(), key=lambda text: -len(words & set(text.split())))
        return json.dumps([{"content": text, "score": 1 / (rank + 1)} for rank, text in enumerate(ranked[:top])])

    @server.tool(structured_output=False)
    def blocks(query: str, tags: list[str] | None = None) -> list[dict[str, Any]]:
        return [{"id": name, **({"tags": tags} if tags else {})} for name in query.split()]

    @server.tool(structured_output=False)
    def prose(query: str) -> list[str]:
        return ["No results.", query]

    @server.tool()
    async def broken(query: str) -> list[str]:
        if query == "slow":
            await anyio.Event().wait()
        if query == "raises":
            raise ToolError("no such index")
        return ["a", "b"]

    return server


@contextmanager
def served(app: Any) -> Iterator[str]:
    import uvicorn

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # who connects before it serves waits
        running = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            running.should_exit = running.force_exit = True
            thread.join()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(faulty().streamable_http_app()) as address:
        yield address


def ask(queries: list[str], k: int = 5, **options: Any) -> list[Any]:
    chosen = options_from(Options, {"timeout": 20} | options)
    with closing(Mcp(Setting(Corpus([], []), folder=EXAMPLES), chosen)) as retriever:
        return retriever.retrieve(Queries(queries, [f"q{number}" for number in range(1, len(queries) + 1)]), k)


def fault(*queries: str, **options: Any) -> str:
    with pytest.raises(groupgt.GroupgtError) as error:
        ask(list(queries), **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# ---- right answers -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_figures_equal_the_same_search_in_python(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "handbook", tmp_path / "handbook")
    shutil.copy(EXAMPLES / "mcp_server.py", tmp_path)
    spec = importlib.util.spec_from_file_location("mcp_server", tmp_path / "mcp_server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "mine.py").write_text(
        "from mcp_server import search as tool\n"
        "def search(query, k): return [(row['id'], row['score']) for row in tool(query, k)]\n"
    )
    text = (EXAMPLES / "mcp.yaml").read_text(encoding="utf-8").replace("../results", "results")
    options = 'tool: search, arguments: {query: "{query}", limit: "{k}"}'
    python = 'python: {use: python, with: {target: "mine:search"}}'
    with served(module.server.streamable_http_app()) as address:
        http = f'http: {{use: mcp, with: {{url: "{address}", {options}}}}}'
        text = text.replace("  bm25: bm25", f"  {python}\n  {http}").replace("[python,", f"[{sys.executable},")
        (tmp_path / "trial.yaml").write_text(text, encoding="utf-8")
        outcome = run_experiment(tmp_path / "trial.yaml", allow_code=True)
    python_answers = outcome.answers["handbook", "python"]
    assert len(python_answers.ids) == 88
    for name in ("tool", "http"):
        answers = outcome.answers["handbook", name]
        assert (answers.ids, answers.scores) == (python_answers.ids, python_answers.scores)
        assert outcome.evaluations["handbook"][name].means == outcome.evaluations["handbook"]["python"].means


def test_ids_and_scores_at_paths_of_the_structured_content(url: str) -> None:
    paths = {"id_field": "document.id", "score_field": "rel"}
    expected = [[("a", 1.0), ("b", 0.5)]]
    assert ask(["one"], 2, url=url, tool="objects", **paths) == expected
    assert ask(["one"], 2, url=url, tool="objects", items="hits", **paths) == expected


def test_json_in_blocks_of_text(url: str) -> None:
    assert ask(["a b", "a", ""], url=url, tool="blocks") == [["a", "b"], ["a"], []]
    tagged = {"url": url, "tool": "blocks", "arguments": {"query": "{query}", "tags": ["x"]}}
    assert "items: expected a list of results, found {'id': 'a', 'tags': ['x']}" in fault("a", **tagged)


def test_texts_without_ids(url: str) -> None:
    (found,) = ask(["dogs"], 1, url=url, tool="texts", text_field="content")
    assert found == [{"text": TEXTS["d2"], "score": 1.0}]
    assert ask(["dogs"], url=url, tool="prose", text_field="content") == [[{"text": "No results."}, {"text": "dogs"}]]


def test_results_without_ids_are_matched_by_the_text_labeller_or_refused(url: str, tmp_path: Path) -> None:
    options = f'{{url: "{url}", tool: texts, text_field: content, arguments: {{query: "{{query}}", top: "{{k}}"}}}}'
    path = small(tmp_path, f'mine: {{use: mcp, version: "1", with: {options}}}\n  both: {{use: rrf, inputs: [mine]}}')
    by_text = "evaluate.labeller={use: text, with: {reference: corpus.jsonl}}"
    for _ in range(2):  # then from the cache
        outcome = run_experiment(path, changes=[by_text], only=["mine"])
        assert outcome.evaluations["set"]["mine"]["recall@1"] == 1
    with pytest.raises(
        groupgt.DataError, match=r"mine: not all of these results have ids, and the id labeller needs ids"
    ):
        run_experiment(path, only=["mine"])
    with pytest.raises(groupgt.RetrieverError, match="expected results with ids for the fusion, found only text"):
        run_experiment(path, changes=[by_text])


def test_columns_are_filled_in_or_arguments_of_their_own(url: str) -> None:
    queries = Queries(["a b"], ["q1"], {"tags": [["x", "y"]], "tag": ["x"]})

    def tags(send: list[str], **options: Any) -> Any:
        chosen = Options(url=url, tool="blocks", id_field="tags", send=send, **options)
        with closing(Mcp(Setting(Corpus([], [])), chosen)) as retriever:
            return retriever.retrieve(queries.sending(send), 5)

    assert tags(["tags"]) == [[["x", "y"], ["x", "y"]]]
    written = {"query": "{query}", "tags": ["{tag}", "not {tag}", "{other}"]}
    assert tags(["tag"], arguments=written) == [[["x", "not x", "{other}"]] * 2]
    assert "the tool blocks(query, tags) does not take tag" in fault("a", url=url, tool="blocks", send=["tag"])


# ---- no answers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("slow", "query 'q2': {url}: no answer in 0.5 s"),
        ("raises", "query 'q2': the tool 'broken' reports an error: "),
    ],
)
def test_a_tool_that_is_slow_or_fails(url: str, query: str, words: str) -> None:
    text = fault("one", query, url=url, tool="broken", timeout=0.5 if query == "slow" else 20)
    assert text.startswith(words.format(url=url))
    assert ("no such index" in text) == (query == "raises")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tool": "prose"}, "expected structured content or JSON, found 'No results. one'"),
        (
            {"tool": "objects"},
            "expected a result with the field 'id' (id_field), found {'document': {'id': 'a'}, 'rel': 1.0}",
        ),
        (
            {"tool": "objects", "items": "hits.rows"},
            "items: expected a list of results at 'hits.rows', found {'took': ",
        ),
        (
            {"tool": "objects", "text_field": "body"},
            "expected a result with its text in 'body' (text_field), found {'doc",
        ),
    ],
)
def test_nonsense(url: str, options: dict[str, Any], words: str) -> None:
    assert fault("one", url=url, **options).startswith(f"query 'q1': {words}")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"tool": "text"},
            "tool: there is no tool 'text' (did you mean 'texts'?); the server has objects(query, filters), ",
        ),
        ({"arguments": {"q": "{query}"}}, "arguments: the tool texts(query, top) needs query"),
        ({"arguments": {"query": "{query}", "k": "{k}"}}, "arguments: the tool texts(query, top) does not take k"),
    ],
)
def test_tools_and_arguments_that_do_not_fit(url: str, options: dict[str, Any], words: str) -> None:
    assert fault("one", url=url, **{"tool": "texts"} | options).startswith(words)


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
        assert fault("one", url=address, tool="search").startswith(f"{address}: ConnectError: ")


def test_a_server_that_is_killed_in_the_middle(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom mcp.server.mcpserver import MCPServer\nserver = MCPServer('x')\n@server.tool()\n"
        "def search(query: str) -> list[str]:\n    if query == 'two':\n        os.write(2, b'no memory\\n')\n"
        "        os._exit(3)\n    return [os.environ['KEY'], os.environ.get('OTHER', '')]\nserver.run()\n"
    )
    options = {"command": [sys.executable, "-c", code], "tool": "search", "env": {"KEY": "value"}}
    assert ask(["one"], **options) == [["value", ""]]
    text = fault("one", "two", **options)
    assert text.startswith("query 'q2': the server closed the connection; its last lines on standard error: ")
    assert text.endswith("no memory")


def test_a_program_that_is_no_server() -> None:
    text = fault("one", command=[sys.executable, "-c", "import sys; sys.exit('no key')"], tool="search")
    assert text == "the server closed the connection; its last lines on standard error: no key"


# ---- experiment files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "tool: expected a server, as command or url, found neither"),
        ({"url": "http://a/mcp", "command": ["a"]}, "tool: expected a server, as command or url, found both"),
        ({"url": "ftp://a/mcp"}, "url: expected http://host/… or https://host/…"),
        ({"url": "http://a/mcp", "arguments": {"q": "query"}}, "arguments: expected {query} in one of the arguments"),
    ],
)
def test_options_that_clash(options: dict[str, Any], words: str) -> None:
    with pytest.raises(groupgt.ConfigError) as error:
        options_from(Options, {"tool": "search"} | options)
    assert words in str(error.value)


def test_a_server_starts_only_where_code_is_allowed(tmp_path: Path) -> None:
    command = json.dumps([sys.executable, "-c", "open('ran', 'w').close()"])
    path = small(tmp_path, f"mine: {{use: mcp, with: {{command: {command}, tool: search}}}}")
    with pytest.raises(groupgt.ConfigError, match="mcp starts this program; allow it with --allow-code"):
        run_experiment(path)
    assert plan(path).unchecked == ["systems.mine.with.command: mcp starts this program"]
    assert not (tmp_path / "ran").exists()
    with pytest.raises(groupgt.ConfigError, match="the server closed the connection"):
        plan(path, allow_code=True)
    assert (tmp_path / "ran").exists()


def test_a_dry_run_lists_the_tools_of_a_server(url: str, tmp_path: Path) -> None:
    path = small(tmp_path, f'mine: {{use: mcp, with: {{url: "{url}", tool: search}}}}')
    words = (
        r"trial.yaml:6:\d+: systems.mine: tool: there is no tool 'search'; the server has objects\(query, filters\), "
    )
    with pytest.raises(groupgt.ConfigError, match=words):
        plan(path)
    assert plan(path, changes=["systems.mine.with.tool=texts"]).rows[0][-1] == "retrieve"
