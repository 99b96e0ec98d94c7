"""Release a version: `python -m tests.release 0.2.0` sets it.

`--check v0.2.0` checks a tag, and `--recipe FILE` the requirements of a recipe for conda.

The version stands in `groupgt/__init__.py`, its date in `CHANGELOG.md`, and who and where in `pyproject.toml`. What
names them elsewhere derives from there.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What stands in `pyproject.toml` until a maintainer fills it in.
PLACEHOLDER = "OWNER"
VERSION = re.compile(r'(?<=^__version__ = ")[^"]+', re.MULTILINE)
UNRELEASED = re.compile(r"^## Unreleased\n", re.MULTILINE)


@dataclass(frozen=True)
class Release:
    """A checkout, seen as what is released from it."""

    root: Path = ROOT

    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    @property
    def filled(self) -> dict[str, str]:
        """What a maintainer fills in: repository, author and email."""
        hooks: dict[str, str] = tomllib.loads(self.text("pyproject.toml"))["tool"]["hatch"]["metadata"]["hooks"]
        return dict(hooks["custom"])

    @property
    def version(self) -> str:
        return VERSION.findall(self.text("groupgt/__init__.py"))[0]

    def derived(self) -> dict[Path, str]:
        """The files that name version, author or repository, as they should be."""
        repository, author, version = self.filled["repository"], self.filled["author"], self.version
        pages = {
            r"(?<=uses: )[\w.-]+/groupgt@[\w.-]+": f"{repository.removeprefix('https://github.com/')}@v{version}",
            r"(?<=repo: )https?://\S+/groupgt(?=\s+rev: )": repository,
            r"(?<=/groupgt)(\s+rev: )\S+": rf"\g<1>v{version}",
        }
        cited = {
            r"(?<=^version: ).*": version,
            r"(?<=^repository-code: ).*": repository,
            r"(?<=^  - name: ).*": author,
        }
        rules = dict.fromkeys([*self.root.glob("docs/*/*.md"), *self.root.glob("examples/*.yml")], pages)
        rules[self.root / "CITATION.cff"] = cited
        rules[self.root / "action.yml"] = {r"(?<=^author: ).*": author}
        rules[self.root / "docs" / "how-to" / "paper.md"] = {
            r"(?<=^  author  = ){{.*}}": f"{{{{{author}}}}}",
            r"(?<=^  version = ){.*}": f"{{{version}}}",
        }
        return {path: self._replaced(path, values) for path, values in rules.items()}

    def _replaced(self, path: Path, values: dict[str, str]) -> str:
        text = path.read_text(encoding="utf-8")
        for pattern, value in values.items():
            text = re.sub(pattern, value, text, flags=re.MULTILINE)
        return text

    def write_derived(self) -> None:
        for path, text in self.derived().items():
            path.write_text(text, encoding="utf-8", newline="\n")

    def unfilled(self) -> Iterator[str]:
        names = [name for name, value in self.filled.items() if PLACEHOLDER in value]
        if names:
            yield f"pyproject.toml: fill in {' and '.join(names)} below [tool.hatch.metadata.hooks.custom]"

    def faults(self, tag: str = "") -> Iterator[str]:
        """What keeps this checkout from being released, under a tag if there is one."""
        yield from self.unfilled()
        if tag not in ("", f"v{self.version}"):
            yield f"groupgt/__init__.py: expected the version of the tag {tag}, found {self.version}"
        changes = self.text("CHANGELOG.md")
        if UNRELEASED.search(changes) or not re.search(rf"^## {re.escape(self.version)} \(\d", changes, re.MULTILINE):
            yield f"CHANGELOG.md: expected {self.version} with its date; run python -m tests.release {self.version}"
        stale = [path.name for path, text in self.derived().items() if text != path.read_text(encoding="utf-8")]
        if stale:
            yield f"{', '.join(stale)}: run python -m tests.update"

    def set(self, version: str, day: date) -> list[str]:
        """Set the version and date its changes; return what prevents it, in which case nothing is written."""
        faults = list(self.unfilled())
        numbers = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
        if numbers is None or tuple(map(int, numbers.groups())) < tuple(map(int, self.version.split("."))):
            faults.append(f"expected a version such as 1.2.3, not before {self.version}, found {version}")
        changes = self.text("CHANGELOG.md")
        if not UNRELEASED.search(changes):
            faults.append("CHANGELOG.md: expected changes below ## Unreleased, found none")
        if not faults:
            changed = {
                "groupgt/__init__.py": VERSION.sub(version, self.text("groupgt/__init__.py")),
                "CHANGELOG.md": UNRELEASED.sub(f"## {version} ({day.isoformat()})\n", changes),
            }
            for name, text in changed.items():
                (self.root / name).write_text(text, encoding="utf-8", newline="\n")
            self.write_derived()
        return faults


def recipe_faults(text: str, dependencies: list[str]) -> list[str]:
    """Return how the requirements of a recipe, as grayskull writes it for conda, differ from those of the package."""
    listed = re.search(r"^  run:\n((?:    - .*\n)+)", text, re.MULTILINE)
    stated = set() if listed is None else set(map(_normal, listed[1].replace("    - ", "").splitlines()))
    needed = set(map(_normal, dependencies))
    return [
        *(f"recipe: {each} is missing" for each in sorted(needed - stated)),
        *(f"recipe: {each} is not needed" for each in sorted(stated - needed) if not each.startswith("python>")),
    ]


def _normal(requirement: str) -> str:
    """Return a requirement without blanks, markers and the case and separators of names."""
    return re.sub(r"[\s]|[;#].*", "", requirement).lower().replace("_", "-")


def main(words: list[str]) -> int:
    """Set a version, or check a tag; 1 if it cannot be released."""
    release = Release()
    match words:
        case ["--check", *tag] if len(tag) < 2:
            faults = list(release.faults(*tag))
        case ["--recipe", path]:
            dependencies = tomllib.loads(release.text("pyproject.toml"))["project"]["dependencies"]
            faults = recipe_faults(Path(path).read_text(encoding="utf-8"), dependencies)
        case [version] if not version.startswith("-"):
            faults = release.set(version, date.today())
        case _:
            faults = ["usage: python -m tests.release VERSION, --check [TAG], or --recipe FILE"]
    print("\n".join(faults) or f"groupgt {release.version}: no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
