"""Every retriever by the name that `use:` gives it. A new one is a file of its own and a line here, or a plugin."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec

from groupgt.errors import ConfigError, listed, near_names
from groupgt.retrievers import ann, bm25, dense, fusion, http, lsa, pgvector, python, results, tfidf, vectors
from groupgt.retrievers.base import Kind

# The entry points under which other distributions name a `Kind` of their own.
GROUP = "groupgt.retrievers"

LEARN = ("scikit-learn", "scipy")
SKLEARN = {"sklearn": "retrieval"}
RETRIEVERS: dict[str, Kind] = {
    "bm25": Kind(bm25.Options, bm25.BM25, libraries=("bm25s", "PyStemmer")),
    "tfidf": Kind(tfidf.Options, tfidf.TfIdf, libraries=LEARN, modules=SKLEARN, note="weak baseline"),
    "lsa": Kind(lsa.Options, lsa.LSA, libraries=LEARN, modules=SKLEARN, note="weak baseline"),
    "dense": Kind(vectors.Options, dense.Dense, libraries=("sentence-transformers", "torch")),
    "ann": Kind(
        ann.Options, ann.Ann, libraries=("usearch", "sentence-transformers", "torch"), modules={"usearch": "ann"}
    ),
    "rrf": Kind(fusion.ReciprocalRank, fuse=fusion.reciprocal_rank, corpus=False),
    "convex": Kind(fusion.Convex, fuse=fusion.convex, corpus=False),
    "results": Kind(results.Options, corpus=False),
    "python": Kind(python.Options, python.made, corpus=False, runs_code=True, live=True),
    "http": Kind(http.Options, http.Http, corpus=False, modules={"urllib3": "http"}, live=True),
    "pgvector": Kind(
        pgvector.Options,
        pgvector.PgVector,
        libraries=("sentence-transformers", "torch"),
        corpus=False,
        modules={"psycopg": "pgvector"},
        live=True,
    ),
}


def names() -> list[str]:
    """The names that `use:` may give, those of plugins included."""
    return [*RETRIEVERS, *sorted({each.name for each in entry_points(group=GROUP)} - set(RETRIEVERS))]


def kind_named(name: str) -> Kind:
    """The kind of that name; raises `ConfigError` where there is none, or where a plugin is at fault."""
    if name in RETRIEVERS:
        return RETRIEVERS[name]
    plugin = next(iter(entry_points(group=GROUP, name=name)), None)
    if plugin is None:
        known = names()
        raise ConfigError(f"expected {listed(known)}, found {name!r}{near_names(name, known)}")
    try:
        kind = plugin.load()
    except Exception as error:
        what = f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}".rstrip(": ")
        raise ConfigError(f"the plugin {plugin.value} cannot be loaded: {what}") from None
    if not isinstance(kind, Kind):
        raise ConfigError(f"the plugin {plugin.value}: expected a groupgt.retrievers.base.Kind, found {kind!r}")
    return kind


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # what it is a part of is not there
        return False


def absent(kind: Kind) -> str | None:
    """What must be installed for a kind, or None where all is there."""
    missing = {module: extra for module, extra in kind.modules.items() if not _importable(module)}
    if not missing:
        return None
    extras = ",".join(sorted(set(missing.values())))
    return f"needs {listed(missing)}: pip install 'groupgt[{extras}]'"
