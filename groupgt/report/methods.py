"""Describe in two sentences how a comparison was made, for a paper, with the BibTeX entries of what they cite."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

import groupgt
from groupgt.comparison.compare import Methods
from groupgt.comparison.systems import Systems
from groupgt.comparison.tests import TESTS
from groupgt.metrics.language import Metric
from groupgt.render.tables import counted
from groupgt.runtime import commit

# BibTeX entries by key: author, title, what it appeared in, year.
REFERENCES: dict[str, tuple[str, str, str, str]] = {
    "agrawal2009": (
        "Rakesh Agrawal and Sreenivas Gollapudi and Alan Halverson and Samuel Ieong",
        "Diversifying Search Results",
        "WSDM",
        "2009",
    ),
    "benjamini1995": (
        "Yoav Benjamini and Yosef Hochberg",
        "Controlling the False Discovery Rate: A Practical and Powerful Approach to Multiple Testing",
        "Journal of the Royal Statistical Society B",
        "1995",
    ),
    "buckley2004": (
        "Chris Buckley and Ellen M. Voorhees",
        "Retrieval Evaluation with Incomplete Information",
        "SIGIR",
        "2004",
    ),
    "burges2005": ("Chris Burges and others", "Learning to Rank Using Gradient Descent", "ICML", "2005"),
    "chapelle2009": (
        "Olivier Chapelle and Donald Metzler and Ya Zhang and Pierre Grinspan",
        "Expected Reciprocal Rank for Graded Relevance",
        "CIKM",
        "2009",
    ),
    "clarke2008": (
        "Charles L. A. Clarke and others",
        "Novelty and Diversity in Information Retrieval Evaluation",
        "SIGIR",
        "2008",
    ),
    "clarke2009": (
        "Charles L. A. Clarke and Maheedhar Kolla and Olga Vechtomova",
        "An Effectiveness Measure for Ambiguous and Underspecified Queries",
        "ICTIR",
        "2009",
    ),
    "clarke2021": (
        "Charles L. A. Clarke and Alexandra Vtyurina and Mark D. Smucker",
        "Assessing Top-k Preferences",
        "ACM Transactions on Information Systems",
        "2021",
    ),
    "dunn1961": (
        "Olive Jean Dunn",
        "Multiple Comparisons Among Means",
        "Journal of the American Statistical Association",
        "1961",
    ),
    "efron1993": (
        "Bradley Efron and Robert J. Tibshirani",
        "An Introduction to the Bootstrap",
        "Chapman and Hall",
        "1993",
    ),
    "holm1979": (
        "Sture Holm",
        "A Simple Sequentially Rejective Multiple Test Procedure",
        "Scandinavian Journal of Statistics",
        "1979",
    ),
    "jarvelin2002": (
        'Kalervo J{\\"a}rvelin and Jaana Kek{\\"a}l{\\"a}inen',
        "Cumulated Gain-Based Evaluation of IR Techniques",
        "ACM Transactions on Information Systems",
        "2002",
    ),
    "min2021": ("Sewon Min and others", "Joint Passage Ranking for Diverse Multi-Answer Retrieval", "EMNLP", "2021"),
    "moffat2008": (
        "Alistair Moffat and Justin Zobel",
        "Rank-Biased Precision for Measurement of Retrieval Effectiveness",
        "ACM Transactions on Information Systems",
        "2008",
    ),
    "romano2005": (
        "Joseph P. Romano and Michael Wolf",
        "Exact and Approximate Stepdown Methods for Multiple Hypothesis Testing",
        "Journal of the American Statistical Association",
        "2005",
    ),
    "smucker2007": (
        "Mark D. Smucker and James Allan and Ben Carterette",
        "A Comparison of Statistical Significance Tests for Information Retrieval Evaluation",
        "CIKM",
        "2007",
    ),
    "student1908": ("Student", "The Probable Error of a Mean", "Biometrika", "1908"),
    "westfall1993": ("Peter H. Westfall and S. Stanley Young", "Resampling-Based Multiple Testing", "Wiley", "1993"),
    "wilcoxon1945": ("Frank Wilcoxon", "Individual Comparisons by Ranking Methods", "Biometrics Bulletin", "1945"),
    "wilson1927": (
        "Edwin B. Wilson",
        "Probable Inference, the Law of Succession, and Statistical Inference",
        "Journal of the American Statistical Association",
        "1927",
    ),
    "yilmaz2006": (
        "Emine Yilmaz and Javed A. Aslam",
        "Estimating Average Precision with Incomplete and Imperfect Judgments",
        "CIKM",
        "2006",
    ),
    "zhai2003": (
        "ChengXiang Zhai and William W. Cohen and John Lafferty",
        "Beyond Independent Relevance: Methods and Evaluation Metrics for Subtopic Retrieval",
        "SIGIR",
        "2003",
    ),
}
# What each test, correction and metric cites; a metric's convention follows a dot.
OF_TEST = {
    "randomization": ("smucker2007",),
    "bootstrap": ("efron1993", "smucker2007"),
    "t": ("student1908",),
    "wilcoxon": ("wilcoxon1945",),
}
OF_CORRECTION = {
    "holm": ("holm1979",),
    "bonferroni": ("dunn1961",),
    "bh": ("benjamini1995",),
    "step-down maximum": ("westfall1993", "romano2005"),
}
OF_METRIC = {
    "ndcg.trec": ("jarvelin2002",),
    "dcg": ("jarvelin2002",),
    "recall.coverage": ("zhai2003",),
    "err": ("chapelle2009",),
    "rbp": ("moffat2008",),
    "rbp_residual": ("moffat2008",),
    "alpha_ndcg": ("clarke2008",),
    "alpha_dcg": ("clarke2008",),
    "err_ia": ("chapelle2009",),
    "nerr_ia": ("chapelle2009",),
    "nrbp": ("clarke2009",),
    "nnrbp": ("clarke2009",),
    "map_ia": ("agrawal2009",),
    "p_ia": ("agrawal2009",),
    "mrecall": ("min2021",),
    "bpref": ("buckley2004",),
    "infap": ("yilmaz2006",),
    "compat": ("clarke2021",),
}
CORRECTIONS = {
    "holm": "Holm's method",
    "bonferroni": "Bonferroni's method",
    "bh": "the method of Benjamini and Hochberg",
    "step-down maximum": "the step-down maximum",
    "studentized range": "the studentized range",
    "none": "not corrected",
}
BOOKS = ("efron1993", "westfall1993")
JOURNALS = ("Journal", "Transactions", "Biometri")


def methods_of(systems: Systems) -> Methods:
    """Describe a comparison: metrics with their parameters, population, ground truth, test, intervals and versions."""
    sentences = [_measured(systems), _tested(systems)] if systems.is_compared else [_measured(systems)]
    return Methods(" ".join(sentences), "\n\n".join(map(_entry, sorted(set(cited(systems))))))


def cited(systems: Systems) -> Iterator[str]:
    """Yield the keys of `REFERENCES` that describe the metrics, the test, the correction and the intervals."""
    for metric in systems.metrics.values():
        yield from OF_METRIC.get(metric.name, OF_METRIC.get(f"{metric.name}.{metric.convention}", ()))
        if ("gain", "exp") in metric.parameters:
            yield "burges2005"
    if not systems.is_compared:
        return
    settings = systems.settings
    yield from OF_TEST[settings.test]
    if len(systems.names) > 2 or settings.pairs:
        yield from OF_CORRECTION.get(_family(systems), ())
    yield from ("efron1993", "wilson1927")


def _measured(systems: Systems) -> str:
    """Return the sentence on what was measured."""
    metrics = joined([in_full(metric) for metric in systems.metrics.values()])
    count = counted(max(map(systems.queries_of, systems.names)), "query")
    names = counted(len(systems.names), "system")
    truth = f"the ground truth {systems.first.truth.digest[:12]}" if systems.evaluations else "the ground truth"
    policy = systems.first.policy if systems.evaluations else systems.policy
    changes = f" (policy {policy.changes})" if policy.changes else ""
    missing = {"zero": "count as 0", "skip": "are left out", "error": "are refused"}[policy.missing]
    labeller = systems.first.labeller if systems.evaluations else None
    matched = "" if labeller is None or labeller.name == "id" else f", with results matched by {labeller}"
    return (
        f"We evaluated {names} with {metrics}, under the {systems.convention} convention, over {count} of {truth}"
        f"{matched}; queries without results {missing}{changes}."
    )


def in_full(metric: Metric) -> str:
    """Return a metric with all its parameters, also those with default values."""
    values = {parameter.name: parameter.default for parameter in metric.formula.parameters} | dict(metric.parameters)
    shown = [] if metric.level is None else [f"level={metric.level:g}"]
    shown += [f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()]
    cutoff = "" if metric.cutoff is None else f"@{metric.cutoff}"
    convention = f".{metric.convention}" if metric.convention else ""
    return f"{metric.name}{convention}{'(' + ', '.join(shown) + ')' if shown else ''}{cutoff}"


def _tested(systems: Systems) -> str:
    """Return the sentence on the test, its family, the intervals and the versions."""
    settings = systems.settings
    drawn = f" with {settings.resamples:,} resamples (seed {settings.seed})" if settings.draws else ""
    test = f"a two-sided {TESTS[settings.test].title}{drawn}"
    whom = (
        "Each pair of systems was compared" if settings.pairs else f"Each system was compared with {systems.baseline}"
    )
    family = _family(systems)
    among = "pairs" if settings.pairs else "comparisons"
    whole = len(systems.names) * (len(systems.names) - 1) // 2 if settings.pairs else len(systems.names) - 1
    if family == "none" or whole < 2:
        corrected = f"p-values were {CORRECTIONS['none']}"
    else:
        corrected = f"p-values were corrected over the {whole} {among} of a metric by {CORRECTIONS[family]}"
    basis = {"": "", "audit": ", corrected by an audit", "annotators": ", averaged over annotators"}[systems.basis]
    level = f"{100 * settings.confidence:g}%"
    return (
        f"{whom} by {test}{basis}, at a significance level of {settings.alpha:g}; {corrected}, and each mean has a "
        f"{level} confidence interval of its own from a studentized bootstrap of the score statistic ({versions()})."
    )


def _family(systems: Systems) -> str:
    settings = systems.settings
    return settings.of_pairs(is_estimated=bool(systems.basis)) if settings.pairs else settings.corrects


def versions() -> str:
    """Return the versions of groupgt, with its commit where it runs from a checkout, Python, NumPy and SciPy."""
    parts = [f"groupgt {groupgt.__version__}{f', commit {found}' if (found := commit()) else ''}"]
    parts.append(f"Python {platform.python_version()}")
    for name, title in (("numpy", "NumPy"), ("scipy", "SciPy")):
        try:
            parts.append(f"{title} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts)


def joined(texts: Sequence[str]) -> str:
    """Join texts, as in `a, b and c`."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _entry(key: str) -> str:
    """Return a BibTeX entry."""
    author, title, where, year = REFERENCES[key]
    is_article = where.startswith(JOURNALS) or any(word in where for word in JOURNALS)
    kind, field = (
        ("book", "publisher")
        if key in BOOKS
        else ("article", "journal")
        if is_article
        else ("inproceedings", "booktitle")
    )
    lines = [f"  author = {{{author}}}", f"  title = {{{title}}}", f"  {field} = {{{where}}}", f"  year = {{{year}}}"]
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"
