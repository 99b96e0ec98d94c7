"""What is asked of a built site finds what it is there to find."""

from __future__ import annotations

from pathlib import Path

from tests.docs.built import faults

SOUND = '<html><body id="top"><a href="other.html#place">x</a><a href="https://elsewhere.org">y</a><math></math></body></html>'


def site(folder: Path, index: str, other: str = '<p id="place"></p>', style: str = "p {}") -> Path:
    (folder / "index.html").write_text(index, encoding="utf-8")
    (folder / "other.html").write_text(other, encoding="utf-8")
    (folder / "site.css").write_text(style, encoding="utf-8")
    return folder


def test_a_sound_site_has_no_faults(tmp_path: Path) -> None:
    assert faults(site(tmp_path, SOUND)) == []


def test_what_is_loaded_from_elsewhere_is_found(tmp_path: Path) -> None:
    index = (
        SOUND + '<script src="https://cdn.org/a.js"></script><link rel="stylesheet" href="//cdn.org/a.css">'
        '<link rel="next" href="other.html"><img src="x.png">'
    )
    style = "@font-face { src: url('https://fonts.org/a.woff2') }"
    assert faults(site(tmp_path, index, style=style)) == [
        "index.html loads https://cdn.org/a.js",
        "index.html loads //cdn.org/a.css",
        "site.css loads https://fonts.org/a.woff2",
    ]


def test_links_and_anchors_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    index = SOUND + '<a href="gone.html">a</a><a href="other.html#gone">b</a><a href="#gone">c</a><a href="#top">d</a>'
    assert faults(site(tmp_path, index)) == [
        "index.html links to gone.html",
        "index.html links to other.html#gone",
        "index.html links to #gone",
    ]


def test_a_site_without_mathml_is_found(tmp_path: Path) -> None:
    assert faults(site(tmp_path, SOUND.replace("<math></math>", ""))) == ["no page has a formula in MathML"]
