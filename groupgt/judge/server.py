"""Serves the page on 127.0.0.1. Static files need no token, but data and acts do."""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from types import FrameType
from typing import TYPE_CHECKING, Any

from groupgt.errors import ConfigError, DataError, GroupgtError
from groupgt.formats.replay import FINISHING
from groupgt.judge.session import Session, UnknownQueryError
from groupgt.render.page.page import script, stylesheet

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

TOKEN = "x-groupgt-token"  # noqa: S105  # the name of a header
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def _page_file(name: str) -> str:
    return (files("groupgt.judge") / "page" / name).read_text(encoding="utf-8")


# The files of the page, which contain no data.
STATIC: dict[str, tuple[str, Callable[[], str]]] = {
    "/": ("text/html", lambda: _page_file("judge.html")),
    "/page.css": ("text/css", stylesheet),
    "/judge.css": ("text/css", lambda: _page_file("judge.css")),
    "/base.js": ("text/javascript", lambda: script("base")),
    "/judge.js": ("text/javascript", lambda: _page_file("judge.js")),
}


def application(session: Session, token: str, hosts: set[str], finished: Callable[[], None] | None = None) -> Starlette:
    """Return the web application. `finished` is called after a query is done or skipped."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    lock = threading.Lock()

    def answer(status: int, value: Any) -> Response:
        return JSONResponse(value, status_code=status, headers=HEADERS)

    def refused(request: Request, *, needs_token: bool = True) -> Response | None:
        if request.headers.get("host", "") not in hosts:
            return answer(403, {"error": "wrong host"})
        origin = request.headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            return answer(403, {"error": "wrong origin"})
        sent_token = request.headers.get(TOKEN, "").encode("utf-8", "replace")
        if needs_token and not secrets.compare_digest(sent_token, token.encode()):
            return answer(401, {"error": "open the address that the command printed"})
        return None

    def static(request: Request) -> Response:
        kind, text = STATIC[request.url.path]
        return refused(request, needs_token=False) or Response(text(), media_type=kind, headers=HEADERS)

    def respond(make: Callable[[], Any], prepare: Callable[[], object]) -> Response:
        try:
            prepare()
            with lock:
                return answer(200, make())
        except UnknownQueryError as error:
            return answer(404, {"error": str(error)})
        except GroupgtError as error:
            return answer(400, {"error": str(error)})

    # What a request is answered with, and what has to be ready before.
    data: dict[str, tuple[Callable[[Mapping[str, str]], Any], Callable[[], object]]] = {
        "/api/overview": (lambda query: session.overview(), session.prepare),
        "/api/query": (lambda query: session.view(query.get("qid", "")), session.prepare_queries),
        "/api/search": (lambda query: session.search(query.get("text", ""), query.get("qid", "")), session.prepare_all),
    }

    def read(request: Request) -> Response:
        make, prepare = data[request.url.path]
        return refused(request) or respond(lambda: make(request.query_params), prepare)

    def progress(request: Request) -> Response:
        """Answer at once, even while other requests wait."""
        return refused(request) or answer(200, {"indexed": session.plan.index.done})

    async def act(request: Request) -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return answer(415, {"error": "expected application/json"})
        try:
            requested = json.loads(await request.body())
        except ValueError:
            return answer(400, {"error": "expected JSON"})
        if not isinstance(requested, dict):
            return answer(400, {"error": "expected an object"})

        def done() -> dict[str, Any]:
            written = session.act(requested)
            warning = None
            if written["act"] in FINISHING and finished is not None:
                try:
                    finished()
                except GroupgtError as error:  # the act is in the journal
                    warning = f"saved in the journal, but the ground truth was not written: {error}"
            undone = next((act.get("doc") for act in session.log.acts if act["seq"] == written.get("of")), None)
            shown = {"view": session.view(written["qid"]), "overview": session.overview()}
            return {"seq": written["seq"], **shown, "undone": undone, "warning": warning}

        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(respond, done, session.prepare_queries)

    routes = [Route(path, static, methods=["GET"]) for path in STATIC]
    routes += [*(Route(path, read) for path in data), Route("/api/progress", progress)]
    routes += [Route("/api/act", act, methods=["POST"])]
    return Starlette(routes=routes)


def serve(session: Session, port: int, ready: Callable[[str], None], finished: Callable[[], None]) -> None:
    """Serve the page until interrupted. `ready` is called with its address, whose fragment contains the token."""
    try:
        import uvicorn
    except ImportError:
        raise ConfigError("the judge page needs starlette and uvicorn: pip install 'groupgt[judge]'") from None
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise DataError(f"--port {port}: cannot be used: {error.strerror or error}") from None
    port = listener.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = application(session, token, {f"127.0.0.1:{port}", f"localhost:{port}"}, finished)
    # Neither requests nor the token are logged.
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            session.plan.index.stopped.set()  # requests may be waiting for it
            super().handle_exit(sig, frame)

    def prepare() -> None:
        with suppress(GroupgtError):  # the request that needs it reports it
            session.prepare_all()

    # The page shows the progress meanwhile.
    threading.Thread(target=prepare, daemon=True).start()
    ready(f"http://127.0.0.1:{port}/#{token}")
    Server(config).run(sockets=[listener])
