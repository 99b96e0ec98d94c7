"""A retriever that calls the search tool of an MCP server, with the official SDK."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from tempfile import TemporaryFile
from typing import Annotated, Any

from groupgt.errors import ConfigError, RetrieverError, display, near_names
from groupgt.options import Clash, Doc
from groupgt.retrievers import base
from groupgt.retrievers.base import SHOWN_CHARS, IdField, RetrieverPlugin, ScoreField, Send, Timeout, as_pairs, value_at
from groupgt.retrievers.command import filled, last_words, program_of
from groupgt.retrievers.http import is_url
from groupgt.runtime import one_line


@dataclass(frozen=True)
class Options(base.Options):
    """Options for `use: mcp`, which calls a tool of an MCP server for each query.

    The server is a program that speaks MCP on standard input and output (`command`, which requires --allow-code), or it
    has a `url` (streamable HTTP). A column in `send` replaces its name in braces in an argument. If no argument
    contains its name, the column becomes a separate argument. groupgt reads results from the answer's structured
    content, or from JSON in its text. The server is queried on every run. Set its `version` next to `use` to cache
    answers.
    """

    tool: Annotated[str, Doc("Name of the search tool.")]
    command: Annotated[list[str], Doc("The command that starts the server, with its arguments.")] = field(
        default_factory=list
    )
    url: Annotated[str, Doc("The URL of the server, such as http://localhost:8000/mcp.")] = ""
    arguments: Annotated[dict[str, Any], Doc("Arguments for the tool, with {query} and {k} filled in.")] = field(
        default_factory=lambda: {"query": "{query}"}
    )
    send: Send = field(default_factory=list)
    items: Annotated[
        str, Doc("Path to the list of results, such as data.hits (default: the answer, or the only list in it).")
    ] = ""
    id_field: IdField = "id"
    score_field: ScoreField = "score"
    text_field: Annotated[
        str, Doc("Field that holds the text of a result that has no id. Only the text labeller can match such results.")
    ] = ""
    env: Annotated[
        dict[str, str], Doc("Environment variables to set for the program, which inherits only a few, such as PATH.")
    ] = field(default_factory=dict)
    headers: Annotated[dict[str, str], Doc("Headers for each request to the URL.")] = field(default_factory=dict)
    timeout: Timeout = 30.0

    def batch_size(self) -> int:
        return 1

    def program(self) -> Sequence[str]:
        return self.command

    def clashes(self) -> Iterator[Clash]:
        """Yield errors if the server is given twice or not at all, or if no argument contains the query."""
        if bool(self.command) == bool(self.url):
            yield Clash("tool", f"expected a server, as command or url, found {'both' if self.url else 'neither'}")
        if self.url and not is_url(self.url):
            yield Clash("url", "expected http://host/… or https://host/…, with special characters percent-encoded")
        if "{query}" not in json.dumps(self.arguments):
            yield Clash("arguments", "expected {query} in one of the arguments")


class Mcp(base.OneByOne):
    """A client that sends all queries to one server, in its own thread because the SDK is asynchronous."""

    def __init__(self, setting: base.Setting, options: Options) -> None:
        from anyio.from_thread import start_blocking_portal

        logging.getLogger("mcp").addHandler(logging.NullHandler())  # what it logs is in the errors below
        self.options = options
        written = json.dumps(options.arguments, ensure_ascii=False)
        more = {name: f"{{{name}}}" for name in options.send if f"{{{name}}}" not in written}
        self.arguments = options.arguments | more
        self.stack, self.session = ExitStack(), ExitStack()
        self.errors = self.stack.enter_context(TemporaryFile())  # noqa: SIM115  # it is entered
        try:
            self.portal = self.stack.enter_context(start_blocking_portal())
            opened = self.portal.wrap_async_context_manager(self._opened(setting))
            self.client = self._called(self.session.enter_context, opened)
            self._check_tool()
        except BaseException:
            self.close()
            raise

    def answer(self, query: str, k: int, **sent: Any) -> Any:
        """Return the results of the tool for a query."""
        arguments = _filled(self.arguments, {"query": query, "k": k, **sent})
        result = self._called(self.portal.call, self.client.call_tool, self.options.tool, arguments)
        texts = [block.text for block in result.content if block.type == "text"]
        if result.is_error:
            told = " ".join(" ".join(texts).split())[:SHOWN_CHARS] or "(no message)"
            raise RetrieverError(f"the tool {self.options.tool!r} reports an error: {told}")
        found = self._items(result.structured_content, texts)[:k]
        if self.options.text_field:
            return [self._text(item) for item in found]
        return as_pairs(found, self.options.id_field, self.options.score_field)

    def close(self) -> None:
        """Close the connection, which also ends the server if this client started it."""
        with self.stack, suppress(Exception, BaseExceptionGroup):  # what broke the connection has been told
            self.session.close()

    @asynccontextmanager
    async def _opened(self, setting: base.Setting) -> AsyncIterator[Any]:
        """Start the server or connect to it, and yield a client."""
        import httpx2
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        options = self.options
        async with AsyncExitStack() as stack:
            transport: Any
            if options.url:
                limits = httpx2.Timeout(options.timeout, read=None)  # the client limits the time of each answer
                http = await stack.enter_async_context(httpx2.AsyncClient(headers=options.headers, timeout=limits))
                transport = streamable_http_client(options.url, http_client=http)
            else:
                program, *arguments = program_of(options.command, setting.folder)
                server = StdioServerParameters(command=program, args=arguments, env=options.env, cwd=setting.folder)
                errors: Any = self.errors  # only its descriptor is used
                transport = stdio_client(server, errlog=errors)
            yield await stack.enter_async_context(Client(transport, read_timeout_seconds=options.timeout))

    def _called(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call the SDK and return the result, or raise a `RetrieverError` that explains its exception."""
        try:
            return call(*arguments)
        except Exception as error:
            raise self._fault(error) from None

    def _fault(self, error: BaseException) -> RetrieverError:
        """Return an error that says why a call failed. Closing the connection raises the error that broke it."""
        import mcp_types

        try:
            self.session.close()
        except (Exception, BaseExceptionGroup) as cause:
            error = cause
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        meanings = {
            mcp_types.REQUEST_TIMEOUT: f"no answer in {self.options.timeout:g} s",
            mcp_types.CONNECTION_CLOSED: "the server closed the connection",
        }
        where = f"{self.options.url}: " if self.options.url else ""
        what = meanings.get(getattr(error, "code", 0)) or one_line(error)
        return RetrieverError(f"{where}{what}{last_words(self.errors)}")

    def _check_tool(self) -> None:
        """Raise `ConfigError` if the server has no such tool, or the tool does not take these arguments."""
        tools: list[Any] = []
        cursor = None
        while True:
            page = self._called(self.portal.call, partial(self.client.list_tools, cursor=cursor))
            tools += page.tools
            if (cursor := page.next_cursor) is None:
                break
        schemas = {tool.name: tool.input_schema for tool in tools}
        listing = ", ".join(f"{name}({', '.join(schema.get('properties', {}))})" for name, schema in schemas.items())
        name, given = self.options.tool, self.arguments
        if name not in schemas:
            what = f"tool: there is no tool {name!r}{near_names(name, schemas)}; the server has {listing or 'none'}"
            raise ConfigError(what)
        schema = schemas[name]
        taken = schema.get("properties", {})
        missing = [key for key in schema.get("required", ()) if key not in given]
        unknown = [] if schema.get("additionalProperties") else [key for key in given if key not in taken]
        if missing or unknown:
            what = f"needs {', '.join(missing)}" if missing else f"does not take {', '.join(unknown)}"
            raise ConfigError(f"arguments: the tool {name}({', '.join(taken)}) {what}")

    def _items(self, value: Any, texts: list[str]) -> list[Any]:
        """Return the list of results in an answer, from its structured content or else from the JSON in its text."""
        if value is None or (isinstance(value, dict) and list(value.values()) == texts):  # a text in a wrapper
            try:
                values = [json.loads(text) for text in texts]
            except ValueError:
                if self.options.text_field:
                    return list(texts)
                shown = display(" ".join(texts), SHOWN_CHARS)
                raise RetrieverError(f"expected structured content or JSON, found {shown}") from None
            value = values[0] if len(values) == 1 else values
        found = value_at(value, self.options.items) if self.options.items else value
        if isinstance(found, dict) and not self.options.items:
            lists = [part for part in found.values() if isinstance(part, list)]
            if value_at(found, self.options.text_field or self.options.id_field) is not base.ABSENT:
                lists.append([found])  # a single result
            found = lists[0] if len(lists) == 1 else found
        if not isinstance(found, list):
            at = f" at {self.options.items!r}" if self.options.items else ""
            raise RetrieverError(f"items: expected a list of results{at}, found {display(value, SHOWN_CHARS)}")
        return found

    def _text(self, item: Any) -> dict[str, Any]:
        """Return a result that has text but no id."""
        text = item if isinstance(item, str) else value_at(item, self.options.text_field)
        if not isinstance(text, str):
            where = f"{self.options.text_field!r} (text_field)"
            raise RetrieverError(f"expected a result with its text in {where}, found {display(item, SHOWN_CHARS)}")
        score = value_at(item, self.options.score_field)
        return {"text": text} | ({} if score is base.ABSENT else {"score": score})


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill values into arguments of a tool. A value that is the entire argument keeps its type."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    name = template.removeprefix("{").removesuffix("}")
    return values[name] if template == f"{{{name}}}" and name in values else filled(template, values)


SUMMARY = "The search tool of an MCP server, over standard input and output or HTTP."
PLUGIN = RetrieverPlugin(Options, Mcp, summary=SUMMARY, corpus=False, modules={"mcp": "mcp"}, live=True, probed=True)
