"""Figures are sound specifications, say what they rest on, and can be read without color and without eyes."""

from __future__ import annotations

import copy
import itertools
import json
import lzma
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import groupgt
from groupgt.errors import ConfigError
from groupgt.render import drawing, encodings, figures
from groupgt.render.drawing import MIME, Figure
from groupgt.render.themes import THEMES
from tests.render.samples import SYSTEMS, samples

HERE = Path(__file__).parent
SAMPLES = samples()


def schema(version: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    held = lzma.decompress((HERE / f"vega-lite-{version}.json.xz").read_bytes())
    return jsonschema.Draft7Validator(json.loads(held))


@pytest.mark.parametrize("version", ["5.6.1", "6.4.3"])
def test_every_figure_is_a_sound_specification(version: str) -> None:
    validator = schema(version)
    for name, figure in SAMPLES.items():
        # Rows are data, of which the schema says nothing, and which take it long.
        spec = copy.deepcopy(figure.spec)
        spec["data"]["values"] = spec["data"]["values"][:5]
        assert validator.is_valid(spec), f"{name}: {next(validator.iter_errors(spec))}"
        for theme in THEMES:
            assert "$" not in json.dumps({**figure.themed(theme), "$schema": ""}).replace('"$schema"', ""), name


def test_the_schema_refuses_what_is_none() -> None:
    spec = copy.deepcopy(SAMPLES["forest"].spec)
    spec["layer"][0]["mark"]["type"] = "wand"
    assert not schema("5.6.1").is_valid(spec)
    assert not schema("6.4.3").is_valid(spec)


def test_labels_keep_both_ends_of_names(tmp_path: Path) -> None:
    """Names of 41 characters that differ at their end become 15 + 1 + 15 characters on the slanted axis."""
    pytest.importorskip("vl_convert", reason="the extra groupgt[plots] is not installed")
    names = [f"reranker-of-hybrid-search-version-2-top{most}" for most in (50, 99)]
    rows = [{"slice": "all", "system": name, "value": 0.5, "queries": 1} for name in names]
    figures.slices(rows, encodings.About("rank", 5, "trec", "")).save(tmp_path / "slices.svg")
    labels = re.findall(r">([^<>]*…[^<>]*)</text>", (tmp_path / "slices.svg").read_text(encoding="utf-8"))
    assert labels == [f"{name[:15]}…{name[-14:]}" for name in names]


def test_samples_show_every_kind_of_figure() -> None:
    assert {figure.name for figure in SAMPLES.values()} == set(figures.FIGURES)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_figure_states_its_population_and_rules(name: str) -> None:
    spec = SAMPLES[name].spec
    subtitle = " ".join(spec["title"]["subtitle"])
    for said in ("n = 40 queries", "convention coverage", "ndcg@10"):
        assert said in subtitle
        assert said in spec["description"]
    assert "default policy" in spec["description"]


def test_a_figure_takes_another_title_and_size() -> None:
    figure = SAMPLES["forest"]
    spec = figure.styled(title="Means", width=300, height=200).spec
    assert spec["title"] == {"text": "Means"}
    assert (spec["width"], spec["height"]) == (300, 200)
    assert "title" not in figure.styled(title="").spec
    assert figure.styled().spec == figure.spec
    panels = SAMPLES["depth"].styled(width=600).spec
    assert panels["spec"]["width"] == 600 // min(3, len(panels["facet"]["sort"]))
    with pytest.raises(groupgt.ConfigError, match="width: expected at least 1 pixel, found 0"):
        figure.styled(width=0)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_figure_has_a_text_and_its_data_as_a_table(name: str) -> None:
    figure = SAMPLES[name]
    assert len(figure.text) > 30
    assert spec_values(figure)
    assert len(figure.rows) == len(spec_values(figure))
    assert all(len(row) == len(figure.headers) for row in figure.rows)
    assert figure.table_html().count("<tr>") == len(figure.rows) + 1
    assert figure.text in repr(figure)


def spec_values(figure: Figure) -> list[Any]:
    return list(figure.spec["data"]["values"])


def test_texts_name_what_is_best() -> None:
    assert SAMPLES["forest"].text.startswith("Means of ndcg@10 with 95% CI: hybrid[k=10] 0.8000 (0.7000 to 0.9000)")
    assert "16 better, 15 worse, 9 the same; mean +0.0500 (+0.0100 to +0.0900)" in SAMPLES["deltas"].text
    assert "at k1 = 1.2 and b = 0.4" in SAMPLES["sweep of two"].text
    assert SAMPLES["latency"].text.endswith("hybrid[k=10] (0.8000, 50), lsa (0.6000, 16.7).")


def test_many_questions_are_one_area() -> None:
    assert SAMPLES["deltas"].spec["layer"][0]["mark"]["type"] == "rect"
    assert SAMPLES["deltas of many"].spec["layer"][0]["mark"]["type"] == "area"


def test_systems_beyond_the_palette_look_alike() -> None:
    rows = [
        {"system": f"s{place}", "kind": "first hit", "rank": rank, "share": 0.5}
        for place in range(12)
        for rank in (1, 2)
    ]
    encoding = figures.ecdf(rows, encodings.About("rank", 5, "trec", "")).template["spec"]["layer"][0]["encoding"]
    assert encoding["color"]["scale"]["range"][encodings.COLORS :] == ["$same"] * 4
    assert encoding["color"]["legend"]["values"] == [f"s{place}" for place in range(encodings.COLORS)]


# How the three kinds of cones are seen where one kind is missing, for linear RGB: Machado and others 2009, severity 1.
DEFICIENCIES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}


def linear(color: str) -> list[float]:
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(color: str) -> float:
    red, green, blue = linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    red, green, blue = (min(1.0, max(0.0, part)) for part in rgb)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def difference(first: str, second: str, matrix: tuple[tuple[float, ...], ...]) -> float:
    seen = [[sum(a * b for a, b in zip(row, linear(color))) for row in matrix] for color in (first, second)]
    return math.dist(lab(seen[0]), lab(seen[1]))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_colors_are_told_apart_without_a_kind_of_cone(theme: str, deficiency: str) -> None:
    colors, matrix = THEMES[theme], DEFICIENCIES[deficiency]
    for first, second in itertools.combinations(("better", "worse", "same"), 2):
        assert difference(colors[first], colors[second], matrix) > 20, (first, second)
    # Steps of a heat map, one after the other.
    for place in range(5):
        assert difference(colors[f"step{place}"], colors[f"step{place + 1}"], matrix) > 8
    for place in range(4):
        assert difference(colors[f"turn{place}"], colors[f"turn{place + 1}"], matrix) > 12
    # Four systems are told apart by color alone; more have dashes too.
    for first, second in itertools.combinations(range(4), 2):
        assert difference(colors[f"system{first}"], colors[f"system{second}"], matrix) > 8, (first, second)


@pytest.mark.parametrize("theme", THEMES)
def test_text_and_marks_stand_out_from_their_ground(theme: str) -> None:
    colors = THEMES[theme]
    for name in ("ink", "soft", "better", "worse"):
        assert contrast(colors[name], colors["ground"]) >= 4.5, name
    for place in range(encodings.COLORS):
        assert contrast(colors[f"system{place}"], colors["ground"]) >= 3, place
    for place in range(6):
        assert contrast(colors[f"on{place}"], colors[f"step{place}"]) >= 4.5, place
    for place in range(5):
        assert contrast(colors[f"onturn{place}"], colors[f"turn{place}"]) >= 4.5, place


def test_kinds_differ_in_shape_and_systems_in_dash() -> None:
    shapes = SAMPLES["forest"].spec["layer"][1]["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 4
    dashes = SAMPLES["depth"].spec["spec"]["layer"][0]["encoding"]["strokeDash"]["scale"]["range"]
    assert len(set(map(tuple, dashes))) == len(SYSTEMS)


def test_figures_are_named() -> None:
    known = {"forest": lambda: SAMPLES["forest"], "depth": lambda: SAMPLES["depth"]}
    assert figures.figure_named("depth", known) is SAMPLES["depth"]
    with pytest.raises(ConfigError, match=r"unknown figure 'dept'.*depth"):
        figures.figure_named("dept", known)
    with pytest.raises(ConfigError, match="'sweep' is not available for this result; available: forest, depth"):
        figures.figure_named("sweep", known)


def test_notebooks_get_the_specification_and_no_table_that_hides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "has_converter", lambda: False)
    bundle = SAMPLES["forest"]._repr_mimebundle_()
    assert set(bundle) == {MIME, "text/plain"}
    # The notebook's own theme decides about ground and ink.
    assert "background" not in bundle[MIME]["config"]
    assert "labelColor" not in bundle[MIME]["config"]["axis"]
    assert bundle[MIME]["config"]["title"]["fontSize"] == 14
    assert schema("5.6.1").is_valid(bundle[MIME])


def test_a_figure_saves_itself_as_specification_and_page(tmp_path: Path) -> None:
    figure = SAMPLES["deltas"]
    written = json.loads(figure.save(tmp_path / "a.json").read_text(encoding="utf-8"))
    assert written == figure.spec
    assert b"Content-Security-Policy" in figure.save(tmp_path / "a.html").read_bytes()
    with pytest.raises(ConfigError, match=r"expected a file that ends in .*\.svg.*, found \.gif"):
        figure.save(tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="theme: expected light or dark"):
        figure.save(tmp_path / "a.json", theme="sepia")
    with pytest.raises(OSError, match=r"a\.json"):
        figure.save(tmp_path / "none" / "a.json")


def test_pictures_need_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "has_converter", lambda: False)
    with pytest.raises(ConfigError, match=r"a\.svg: images need vl-convert \(pip install 'groupgt\[plots\]'\)"):
        SAMPLES["deltas"].save(tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


@pytest.mark.parametrize("theme", THEMES)
def test_pictures_are_drawn(tmp_path: Path, theme: str) -> None:
    pytest.importorskip("vl_convert")
    figure = SAMPLES["forest"]
    svg = figure.save(tmp_path / "a.svg", theme=theme).read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert "bm25[k1=1.2,b=0.75]" in svg
    assert "n = 40 queries" in svg
    assert THEMES[theme]["better"] in svg
    assert figure.save(tmp_path / "a.png", theme=theme).read_bytes()[:4] == b"\x89PNG"
    assert figure.save(tmp_path / "a.pdf", theme=theme).read_bytes()[:5] == b"%PDF-"
    assert figure._repr_mimebundle_()["image/svg+xml"].startswith("<svg")


def test_control_characters_are_drawn_as_what_cannot_be_shown(tmp_path: Path) -> None:
    """Written as they are, they end the process that draws."""
    pytest.importorskip("vl_convert")
    figure = SAMPLES["forest"]
    hostile = json.loads(json.dumps(figure.template).replace("bm25[", "bm\\u0000\\u001b25["))
    svg = replace(figure, template=hostile).save(tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "bm\ufffd\ufffd25[" in svg


@pytest.mark.parametrize("version", ["5.8", "6.4"])
def test_old_and_new_vega_lite_draw_every_figure(version: str) -> None:
    converter = pytest.importorskip("vl_convert")
    for name, figure in SAMPLES.items():
        svg = converter.vegalite_to_svg(figure.spec, vl_version=version)
        # A figure that shows nothing has axes alone.
        assert svg.count("<path") > 8 or svg.count("<rect") > 8, name


def test_the_curve_of_interpolated_precision() -> None:
    """a is first of two, b third: precision 1 up to a recall of one half, 2/3 beyond."""
    result = groupgt.evaluate({"q": {"a": 1, "b": 1}}, {"q": ["a", "x", "b"]}, ["map"])
    rows = result.plot("iprec").rows
    assert [row[1] for row in rows] == [step / 10 for step in range(11)]
    assert [row[2] for row in rows] == [1.0] * 6 + [pytest.approx(2 / 3)] * 5


def test_a_color_scale_spans_the_data_and_no_convention_has_no_line() -> None:
    rows = [{"slice": "a", "system": name, "value": value, "queries": 3} for name, value in (("x", 0.2), ("y", 0.7))]
    spec = figures.slices(rows, encodings.About("", 3, "", "")).spec
    assert spec["title"]["subtitle"] == ["n = 3 queries"]
    scales = [layer["encoding"]["color"]["scale"] for layer in spec["layer"] if "color" in layer["encoding"]]
    assert {tuple(scale["domain"]) for scale in scales} == {(0.2, 0.7)}
