"""An MCP server with one tool, which searches the handbook: `python mcp_server.py`, with a port to use HTTP."""

import json
import re
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("handbook")
HANDBOOK = Path(__file__).with_name("handbook") / "corpus.jsonl"
PASSAGES = [json.loads(line) for line in HANDBOOK.read_text(encoding="utf-8").splitlines()]


def words(text: str) -> set[str]:
    """Return the words of a text."""
    return set(re.findall("[a-z]{4,}", text.lower()))


WORDS = [words(passage["contents"]) for passage in PASSAGES]


@server.tool()
def search(query: str, limit: int = 5) -> list[dict[str, str | int]]:
    """Find the passages that share the most words with a query."""
    scores = [len(has & words(query)) for has in WORDS]
    best = sorted(range(len(scores)), key=lambda row: -scores[row])[:limit]
    return [{"id": PASSAGES[row]["doc_id"], "score": scores[row], "text": PASSAGES[row]["contents"]} for row in best]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
