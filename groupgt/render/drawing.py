"""Define Vega-Lite figures with their data as tables. Jupyter displays them, and `save` writes them to files."""

from __future__ import annotations

import base64
import copy
import html
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupgt.errors import ConfigError, listed, printable
from groupgt.private import mapped
from groupgt.records import record
from groupgt.render.exports import check_ending, xml_text
from groupgt.render.tables import fixed
from groupgt.render.themes import CONFIG, LABELS, THEMES, without_neutral

if TYPE_CHECKING:
    from groupgt.render.page.data import Drawing

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
MIME = "application/vnd.vegalite.v5+json"
ENDINGS = (".svg", ".png", ".pdf", ".json", ".html")
# Scale of a PNG relative to the figure on a screen.
PIXELS = 2
# Tables of templates that the page fills in.
FILLED = ("rows", "mean")


@record
class Figure:
    """A figure with its name, its template, and its data as both a sentence and a table.

    In `template`, strings that begin with `$` are color names (see `THEMES`), which `spec` replaces with light colors.
    """

    name: str
    template: dict[str, Any]
    text: str
    headers: list[str]
    rows: list[list[Any]]

    @property
    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification for a light background."""
        return self.themed("light")

    def themed(self, theme: str, config: Mapping[str, Any] = CONFIG) -> dict[str, Any]:
        """Return the specification for a light or dark background."""
        texts = {f"${name}": color for name, color in THEMES[theme].items()} | LABELS
        return dict(replaced({"$schema": SCHEMA, **self.template, "config": config}, texts))

    def styled(self, *, title: str | None = None, width: int | None = None, height: int | None = None) -> Figure:
        """Return a copy with a custom title (empty for none), or size in pixels.

        A custom title also removes the lines below the title. Raises `ConfigError` if a size is not positive.
        """
        sizes = {name: size for name, size in (("width", width), ("height", height)) if size is not None}
        for name, size in sizes.items():
            if size < 1:
                raise ConfigError(f"{name}: expected at least 1 pixel, found {size}")
        changed = dict(self.template)
        if title is not None:
            changed.pop("title", None)
            changed |= {"title": {"text": title}} if title else {}
        if "spec" not in changed:
            return replace(self, template={**changed, **sizes})
        if "width" in sizes:
            # Panels that are side by side share the width.
            panels = min(len(changed["facet"]["sort"]), changed["columns"])
            sizes["width"] = max(sizes["width"] // panels, 1)
        return replace(self, template={**changed, "spec": {**changed["spec"], **sizes}})

    def save(self, path: str | Path, *, theme: str = "light") -> Path:
        """Save the figure as .svg, .png or .pdf (needs `groupgt[plots]`), .json (specification) or .html.

        Raises `ConfigError` for any other extension, and `OSError` if the file cannot be written.
        """
        path = Path(path)
        check_picture(path)
        if theme not in THEMES:
            raise ConfigError(f"theme: expected {listed(list(THEMES))}, found {theme!r}")
        spec, ending = self.themed(theme), path.suffix.lower()
        if ending == ".json":
            data = (json.dumps(spec, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()
        elif ending == ".html":
            from groupgt.render.page.page import figure_page

            data = figure_page(self.text, self.table_html(), self.template)
        else:
            data = _converted(spec, ending)
        path.write_bytes(data)
        return path

    def table_html(self) -> str:
        """Return the data as an HTML table."""
        heads = "".join(f"<th>{html.escape(header)}</th>" for header in self.headers)
        rows = ("".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

    def picture_html(self) -> str:
        """Return the picture as HTML. Requires vl-convert."""
        data = base64.b64encode(_converted(self.spec, ".svg")).decode()
        return f'<img alt="{html.escape(printable(self.text))}" src="data:image/svg+xml;base64,{data}">'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the specification for notebooks, plus a picture if vl-convert is installed.

        HTML is left out, because JupyterLab would show the table instead of the figure.
        """
        bundle: dict[str, Any] = {MIME: self.themed("light", without_neutral(CONFIG)), "text/plain": repr(self)}
        if has_converter():
            bundle["image/svg+xml"] = _converted(self.spec, ".svg").decode()
        return bundle

    def __repr__(self) -> str:
        return f"Figure({self.name}: {self.text})"


# Functions that draw the available figures, by name.
Drawable = dict[str, Callable[[], Figure]]


def check_picture(path: Path) -> None:
    """Raise `ConfigError` if a file extension is not a figure format, or if the format requires a missing package."""
    check_ending(path, ENDINGS)
    if path.suffix.lower() not in (".json", ".html") and not has_converter():
        raise ConfigError(f"{path}: images need vl-convert (pip install 'groupgt[plots]'); .json and .html do not")


def replaced(value: Any, texts: Mapping[str, Any]) -> Any:
    """Return a copy in which strings with an entry in `texts` are replaced. The data stays unchanged."""
    if isinstance(value, str):
        return texts.get(value, value)
    if isinstance(value, Mapping):
        return {
            key: copy.deepcopy(part) if key == "values" and isinstance(part, list) else replaced(part, texts)
            for key, part in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [replaced(item, texts) for item in value]
    return value


def has_converter() -> bool:
    """Return whether vl-convert, which renders pictures, is installed."""
    return find_spec("vl_convert") is not None


def _converted(spec: dict[str, Any], ending: str) -> bytes:
    import vl_convert

    # Control characters are invalid in SVG and crash vl-convert.
    spec = mapped(spec, xml_text)
    if ending == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if ending == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=PIXELS))
    return bytes(vl_convert.vegalite_to_pdf(spec))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def drawing(figure: Figure) -> Drawing:
    """Convert a figure and its data for the report page."""
    rows = [[fixed(cell) if isinstance(cell, float) else _cell(cell) for cell in row] for row in figure.rows]
    return {"template": figure.template, "text": figure.text, "headers": figure.headers, "rows": rows}


def template(figure: Figure, texts: Mapping[str, str] | None = None) -> Drawing:
    """Convert a figure without its data, which the page fills in. `texts` replaces strings that users can change."""
    return {"template": _emptied(replaced(figure.template, texts or {}))}


def _emptied(value: Any) -> Any:
    """Remove rows from a template, since the page fills them in."""
    if isinstance(value, dict):
        if value.get("name") in FILLED:
            return {"name": value["name"], "values": []}
        return {key: _emptied(each) for key, each in value.items() if key != "description"}
    return [_emptied(each) for each in value] if isinstance(value, list) else value
