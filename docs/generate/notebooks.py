"""The example notebooks with the output of their cells."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("desk", "notebook", "paper")
FIGURE = "application/vnd.vegalite.v5+json"


def run(name: str, folder: Path) -> dict[str, Any]:
    """Run the cells of a notebook, with results in `folder`, and return the notebook with their output."""
    notebook: dict[str, Any] = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            source = "".join(cell["source"]).replace('"../results"', repr(str(folder)))
            cell.update(execution_count=count, outputs=_outputs(source, names, count))
    return notebook


def text(notebook: dict[str, Any]) -> str:
    """Return a notebook as the text of its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _outputs(source: str, names: dict[str, object], count: int) -> list[dict[str, Any]]:
    """Run one cell and return what it prints and the value of its last expression."""
    body, value = ast.parse(source).body, None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "notebook", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if stream := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(stream)})
    if value is not None:
        data = {"execution_count": count, "metadata": {}, "output_type": "execute_result"}
        outputs.append({"data": _shown(value), **data})
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """Return a value as the notebook shows it: a figure's specification, or HTML without the picture behind it."""
    plain = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_mimebundle_"):
        return {**plain, FIGURE: value._repr_mimebundle_()[FIGURE]}
    return {**plain, "text/html": _lines(value._repr_html_().partition("<img")[0])}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def files(name: str) -> dict[Path, str]:
    """Return the file of a notebook with the output of its cells."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(EXAMPLES):
        return {EXAMPLES / f"{name}.ipynb": text(run(name, Path(folder)))}
