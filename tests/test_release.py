"""What is released: its long description, its version and date, and what keeps a tag from being released."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from hatch_build import LINK, metadata_of
from tests.docs.test_action import filled, value_of
from tests.release import ROOT, Release, recipe_faults

FILLED = {"repository": "https://github.com/ferries/groupgt", "author": "Solveig Marr", "email": "s@example.org"}
README = (ROOT / "README.md").read_text(encoding="utf-8")
DAY = date(2027, 2, 1)


def test_no_link_of_the_long_description_is_relative() -> None:
    text = metadata_of(FILLED, "1.2.3")["readme"]["text"]
    assert LINK.findall(text) == []
    assert "](https://github.com/ferries/groupgt/raw/v1.2.3/docs/report.png)" in text
    assert "](https://github.com/ferries/groupgt/blob/v1.2.3/CONTRIBUTING.md)" in text
    # Nothing else is changed.
    prefix = re.compile(r"https://github\.com/ferries/groupgt/(?:blob|raw)/v1\.2\.3/")
    assert prefix.sub("", text) == README


def test_the_long_description_renders() -> None:
    pytest.importorskip("comrak", reason="readme-renderer[md] is not installed")
    renderer = pytest.importorskip("readme_renderer.markdown", reason="readme-renderer[md] is not installed")
    page = renderer.render(metadata_of(FILLED, "1.2.3")["readme"]["text"])
    targets = re.findall(r'(?:href|src)="([^#"][^"]*)"', page)  # but for the anchors of headings
    assert len(targets) == len(re.findall(r"\]\((?!#)", README))
    assert [each for each in targets if not each.startswith("https://")] == []
    assert "<img" in page


@pytest.fixture
def checkout(tmp_path: Path) -> Release:
    """What a release reads and writes, filled in by a maintainer who has updated what derives from it."""
    release = Release()
    names = ["pyproject.toml", "groupgt/__init__.py", "CHANGELOG.md"]
    for path in [*(ROOT / name for name in names), *release.derived()]:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    text = release.text("pyproject.toml")
    for name, value in FILLED.items():
        text = re.sub(rf'(?<=^{name} = ").*(?="$)', value, text, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    (tmp_path / "groupgt" / "__init__.py").write_text('"""Doc."""\n\n__version__ = "1.9.0"\n', encoding="utf-8")
    changes = "# Changelog\n\n## Unreleased\n\n- **New.**\n\n### Removed\n\n- Old.\n\n## 1.9.0 (2026-12-01)\n\n- It.\n"
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    copied = Release(tmp_path)
    copied.write_derived()
    return copied


def test_a_version_is_set_wherever_it_is_named(checkout: Release) -> None:
    assert checkout.set("1.10.0", DAY) == []  # later than 1.9.0, though not as text
    assert checkout.text("groupgt/__init__.py") == '"""Doc."""\n\n__version__ = "1.10.0"\n'
    changes = "\n## 1.10.0 (2027-02-01)\n\n- **New.**\n\n### Removed\n\n- Old.\n\n## 1.9.0 (2026-12-01)\n"
    assert changes in checkout.text("CHANGELOG.md")
    citation = yaml.safe_load(checkout.text("CITATION.cff"))
    assert (citation["version"], citation["cff-version"]) == ("1.10.0", "1.2.0")
    assert (citation["authors"], citation["repository-code"]) == ([{"name": "Solveig Marr"}], FILLED["repository"])
    assert yaml.safe_load(checkout.text("action.yml"))["author"] == "Solveig Marr"
    assert "uses: ferries/groupgt@v1.10.0 " in checkout.text("examples/github_actions.yml")
    page = checkout.text("docs/start/gate.md")
    assert "uses: ferries/groupgt@v1.10.0 " in page
    assert "repo: https://github.com/ferries/groupgt\n    rev: v1.10.0\n" in page
    assert "  author  = {{Solveig Marr}},\n" in checkout.text("docs/how-to/paper.md")
    assert "  version = {1.10.0},\n" in checkout.text("docs/how-to/paper.md")
    assert list(checkout.faults("v1.10.0")) == list(checkout.faults()) == []


def texts(root: Path) -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("version", "fault"),
    [
        ("1.8.9", "expected a version such as 1.2.3, not before 1.9.0, found 1.8.9"),
        ("v2.0.0", "expected a version such as 1.2.3, not before 1.9.0, found v2.0.0"),
        ("2.0", "expected a version such as 1.2.3, not before 1.9.0, found 2.0"),
    ],
)
def test_an_invalid_version_changes_nothing(checkout: Release, version: str, fault: str) -> None:
    before = texts(checkout.root)
    assert checkout.set(version, DAY) == [fault]
    assert texts(checkout.root) == before


def test_no_version_without_changes(checkout: Release) -> None:
    checkout.set("2.0.0", DAY)
    assert checkout.set("2.0.1", DAY) == ["CHANGELOG.md: expected changes below ## Unreleased, found none"]


def test_nothing_is_released_while_the_placeholder_stands(checkout: Release) -> None:
    checkout.set("2.0.0", DAY)
    path = checkout.root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(FILLED["repository"], "https://github.com/OWNER/groupgt"), encoding="utf-8")
    checkout.write_derived()
    fault = "pyproject.toml: fill in repository below [tool.hatch.metadata.hooks.custom]"
    assert list(checkout.faults("v2.0.0")) == [fault]
    assert fault in checkout.set("2.0.1", DAY)


def test_a_tag_must_be_what_was_set(checkout: Release) -> None:
    dated = "CHANGELOG.md: expected 1.9.0 with its date; run python -m tests.release 1.9.0"
    assert list(checkout.faults("v1.9.0")) == [dated]  # changes are not released yet
    checkout.set("2.0.0", DAY)
    wrong = "groupgt/__init__.py: expected the version of the tag v2.0.1, found 2.0.0"
    assert list(checkout.faults("v2.0.1")) == [wrong]
    path = checkout.root / "CITATION.cff"
    path.write_text(path.read_text(encoding="utf-8").replace("2.0.0", "1.9.0"), encoding="utf-8")
    assert list(checkout.faults("v2.0.0")) == ["CITATION.cff: run python -m tests.update"]


def test_the_command_says_what_it_expects() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.release"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (
        1,
        "usage: python -m tests.release VERSION, --check [TAG], or --recipe FILE\n",
    )


def test_a_recipe_needs_what_the_package_needs() -> None:
    needs = ["numpy>=2.0", "PyYAML>=6.0.1", "typing-extensions>=4.12", "backports.zstd>=1.0; python_version < '3.14'"]
    rest = ["numpy >=2.0", "pyyaml >=6.0.1", "typing_extensions >=4.12", "backports.zstd >=1.0  # [py<314]"]
    recipe = "".join(f"    - {each}\n" for each in ["python >=3.11", *rest])
    assert recipe_faults(f"requirements:\n  run:\n{recipe}\ntest:\n", needs) == []
    wrong = recipe.replace("numpy >=2.0", "numba")
    assert recipe_faults(f"requirements:\n  run:\n{wrong}\ntest:\n", needs) == [
        "recipe: numpy>=2.0 is missing",
        "recipe: numba is not needed",
    ]


def test_only_a_checked_tag_is_published() -> None:
    flow: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8"))
    publish = flow["jobs"].pop("publish")
    assert set(publish["needs"]) == set(flow["jobs"])
    assert publish["permissions"] == {"id-token": "write"}
    assert "id-token" not in str(flow)
    *_, check = flow["jobs"]["check"]["steps"]
    assert check["run"].startswith("python -m tests.release --check ")
    # A tag goes to PyPI; what is started by hand goes nowhere, or to TestPyPI, which is checked as well.
    upload = publish["steps"][-1]["with"]["repository-url"]
    for event, to, place, host in (
        ("push", "", "pypi", "upload.pypi.org"),
        ("workflow_dispatch", "nowhere", "", ""),
        ("workflow_dispatch", "testpypi", "testpypi", "test.pypi.org"),
    ):
        context = {"github": {"event_name": event, "ref_name": "v1.2.3"}, "inputs": {"to": to}}
        assert value_of(check["if"], context) is value_of(publish["if"], context) is bool(place)
        assert filled(check["env"]["TAG"], context) == ("v1.2.3" if event == "push" else "")
        if place:
            assert filled(publish["environment"], context) == place
            assert filled(upload, context) == f"https://{host}/legacy/"
