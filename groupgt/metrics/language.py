"""Parses metrics such as `name[.convention][(parameter=value, …)][@cutoff]` to `Metric` objects."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from groupgt.errors import Faults, MetricError, listed, near_names, warn
from groupgt.metrics.base import AUTO, CONVENTIONS, Cut, Definition, Formula, Parameter
from groupgt.metrics.catalogue import ABSENT, ALIASES, CATALOGUE, MEANT, SETS, TREC_EVAL, definition_of
from groupgt.model.hits import Bools, Floats, Hits
from groupgt.model.populations import Populations
from groupgt.model.validity import shown
from groupgt.model.values import SCORE, UNITS, Budget
from groupgt.plugins import names, registered

HIGHEST_K = 10**15
# The grade from which documents are relevant, for one metric.
LEVEL = Parameter("level", 0, "a grade above 0", lambda value: value > 0)
# How many of a system's trials are looked at: at least one of them must succeed, or all.
PASSES = {
    name: Parameter(name, 0, "a whole number from 1", lambda value: value >= 1 and value == int(value))
    for name in ("pass_at", "pass_all")
}

_TEXT = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)(?:\.(?P<convention>[A-Za-z_]+))?(?:\((?P<parameters>[^()]*)\))?(?:@(?P<cutoff>.*))?",
    re.DOTALL,
)
IN_TREC_EVAL = re.compile(rf"(?P<name>{'|'.join(TREC_EVAL)})[_.](?P<k>[0-9]+)", re.IGNORECASE)
# Interpolated precision in ir_measures and trec_eval: IPrec@0.1, iprec_at_recall_0.10.
_IPREC = re.compile(
    r"iprec(?:\((?P<parameters>[^()]+)\))?(?:@|_at_recall[_.])(?P<recall>[0-9]*\.?[0-9]+)", re.IGNORECASE
)
_CONTINUED = re.compile(rf"(?P<name>(?:{'|'.join(TREC_EVAL)}|iprec_at_recall)\.)[0-9.]+", re.IGNORECASE)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
# A cutoff that is joined to a name, as in other tools: mrr_at_10, recall5.
_JOINED = re.compile(r"(?P<name>[a-z0-9_-]*?[a-z0-9])(?:_at_|_at|at_|[_-])?(?P<k>[0-9]+)")
# ranx's spelling of a persistence: rbp.95.
_IN_RANX = re.compile(r"(rbp)\.([0-9]+)(@.*)?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Metric:
    """A metric with its convention, parameters and cutoff. `str` returns canonical text that can be parsed again.

    `parameters` contains only values that differ from their defaults, sorted by name. `level` is the lowest relevant
    grade for this metric. Without `level`, the policy decides. `judged_only` is ir_measures' spelling of the
    unjudged=drop policy, which applies to all metrics in a request. `passes` is `pass_at` or `pass_all`, and a number
    of trials. The value is the probability that at least one of these trials succeeds, or that all of them do.

    >>> parse_metric("ndcg.trec(gain=exp)@10")
    Metric('ndcg.trec(gain=exp)@10')
    """

    name: str
    convention: str | None = None
    parameters: tuple[tuple[str, float | str], ...] = ()
    cutoff: int | Budget | None = None
    judged_only: bool = False
    level: float | None = None
    passes: tuple[str, int] | None = None

    @property
    def definition(self) -> Definition:
        """The catalogue entry. Raises `MetricError` if the metric is not registered in this process."""
        definition = definition_of(self.name)
        if definition is None:
            raise not_registered(self.name)
        return definition

    @property
    def formula(self) -> Formula:
        """The formula under this metric's convention."""
        return self.definition.formulas[self.convention]

    @property
    def higher_is_better(self) -> bool:
        """True if higher values are better."""
        return self.definition.higher_is_better

    @property
    def reads_all(self) -> bool:
        """True if a query's value depends on the ground truth of other queries."""
        return any(self.formula.by_name[name].reads_all for name, _ in self.parameters)

    def worth(self, mean: float) -> float:
        """Return a sort key for means, where higher is better and undefined is lowest."""
        return -math.inf if math.isnan(mean) else mean if self.higher_is_better else -mean

    def valued(self, populations: Populations) -> Bools:
        """Return a mask of the queries that have a value of this metric, shape (Q,)."""
        definition = self.definition
        if self.level is not None:
            populations = populations.at_level(self.level)
        return populations.valued(definition.queries, higher_is_better=definition.higher_is_better)

    def __str__(self) -> str:
        return self.short(None)

    def __repr__(self) -> str:
        return f"Metric({str(self)!r})"

    def short(self, convention: str | None) -> str:
        """Return the canonical text, omitting the metric's convention if it equals `convention`."""
        named = [f"{name}={_number_text(value)}" for name, value in self.parameters]
        level = [] if self.level is None else [f"level={_number_text(self.level)}"]
        passes = [] if self.passes is None else [f"{self.passes[0]}={self.passes[1]}"]
        values = ", ".join([*(["judged_only=True"] if self.judged_only else []), *level, *passes, *named])
        shown = "" if self.convention in (None, convention) else f".{self.convention}"
        cutoff = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.name}{shown}{f'({values})' if values else ''}{cutoff}"

    def label(self, text: str, convention: str | None) -> str:
        """Return the name for tables: the requested name if it is an alias, otherwise `short`.

        >>> parse_metric("AP").label("AP", "trec"), parse_metric("ndcg.trec@10").label("ndcg.trec@10", "trec")
        ('AP', 'ndcg@10')
        """
        return self.short(convention) if re.match(rf"{self.name}(?![A-Za-z0-9_-])", text) or not text else text

    def values(self, hits: Hits, cut: Cut | None = None) -> Floats:
        """Return one value per query, shape (Q,). Callers mask the values of queries without groups."""
        if self.passes is not None and self.passes[1] > 1:
            what = f"metric {str(self)!r}: expected at least {self.passes[1]} trials, found a single run"
            raise MetricError(what)
        check_sets([self], hits.judgments.alternative_set is not None)
        return self.formula.function(hits.at_level(self.level), cut or self.cut(hits), **dict(self.parameters))

    def cut(self, hits: Hits) -> Cut:
        """Return the cutoff of this metric for each query."""
        return Cut.at(hits, self.cutoff)

    def explanation(self, hits: Hits, query: int) -> str | None:
        """Return the worked example for one query as an expression, or None if the metric has none."""
        return explanations([self], hits, query)[0]

    @property
    def budget(self) -> Budget | None:
        """The cutoff if it is a budget, otherwise None."""
        return self.cutoff if isinstance(self.cutoff, Budget) else None


def not_registered(name: str) -> MetricError:
    """Return the error for a metric that this process cannot compute."""
    way = "import the module that registers it (--plugin MODULE), or name it in the groupgt.metrics entry points"
    return MetricError(f"metric {name!r}: not registered in this process; {way}")


def explanations(metrics: Iterable[Metric], hits: Hits, query: int) -> list[str | None]:
    """Return a worked example for each metric. Metrics with the same cutoff and level share a sheet."""
    from groupgt.metrics.worksheet import Sheet

    sheets: dict[tuple[int | Budget | None, float | None], Sheet] = {}
    texts: list[str | None] = []
    for metric in metrics:
        explain, key = metric.formula.explanation, (metric.cutoff, metric.level)
        if explain is not None and key not in sheets:
            sheets[key] = Sheet.of(hits.at_level(metric.level), query, metric.cut(hits))
        texts.append(None if explain is None else explain(sheets[key], **dict(metric.parameters)))
    return texts


def check_sets(metrics: Collection[Metric], has_sets: bool) -> None:
    """Raise `MetricError` if a metric does not support sets of alternatives needed together."""
    if not has_sets or all(metric.formula.takes_sets for metric in metrics):
        return
    refused = [str(metric) for metric in metrics if not metric.formula.takes_sets]
    raise MetricError(
        f"{', '.join(refused)}: not defined for ground truth with sets of passages needed together "
        '({"all": [...]}). A set takes up several ranks, which ideal rankings and counts of relevant documents '
        f"do not support. Use {_defined_with_sets()}"
    )


def _defined_with_sets() -> str:
    """List the metrics that support sets, those with several conventions first, then by name length."""
    several: dict[str, list[str]] = {}
    others: list[str] = []
    for definition in sorted(CATALOGUE.values(), key=lambda definition: (len(definition.name), definition.name)):
        taking = [convention for convention, formula in definition.formulas.items() if formula.takes_sets]
        if len(taking) > 1:
            several.setdefault(", ".join(map(str, taking)), []).append(definition.name)
        else:
            others += [str(Metric(definition.name, convention)) for convention in taking]
    several_texts = (f"{listed(names, 'and')} ({conventions})" for conventions, names in several.items())
    return listed([*several_texts, *others], "and")


def parse_metric(text: str | Metric, convention: str = "autorag") -> Metric:
    """Parse a metric. A name without a convention gets the current one.

    Raises `MetricError`, with the expected syntax and similar names, if the text is invalid.

    Args:
        text: The metric, such as `recall@5`, `ndcg.trec(gain=exp)@10` or `rbp(p=0.95)@20`.
        convention: The convention for names without one: `autorag`, `trec` or `coverage`; `auto` selects the first of
            these that has the parameters in the text.

    >>> str(parse_metric("recall@5"))
    'recall.autorag@5'
    >>> str(parse_metric("P_5")), str(parse_metric("rbp(p=0.95)@20"))
    ('precision.trec@5', 'rbp(p=0.95)@20')
    """
    if isinstance(text, Metric):
        return text
    if convention not in (*CONVENTIONS, AUTO):
        near = near_names(convention, CONVENTIONS) if isinstance(convention, str) else ""
        raise MetricError(f"convention: expected {listed(CONVENTIONS)}, found {convention!r}{near}")
    if not isinstance(text, str):
        raise MetricError(f"expected a metric's name as text, found {text!r}")
    return _Parser(text, convention).metric()


def parse_metrics(texts: Sequence[str | Metric], convention: str, ks: Sequence[int] = ()) -> dict[str, Metric]:
    """Parse metrics, keyed by text. Metrics without a cutoff get one entry per k. All errors are reported together."""
    faults = Faults()
    if isinstance(ks, str):
        raise MetricError(f"k: expected a whole number or a list of them, found {shown(ks)}{_as_list(ks)}")
    for k in ks:
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= HIGHEST_K:
            faults.add("k", f"expected whole numbers from 1 to 10^15, found {shown(k)}")
    metrics: dict[str, Metric] = {}
    for text in expanded(texts):
        with faults.merging(MetricError):
            metric = parse_metric(text, convention)
            if ks and _takes_k(str(text), metric):
                metrics |= {f"{text}@{k}": replace(metric, cutoff=k) for k in ks}
            else:
                metrics[str(text)] = metric
    faults.stop(MetricError)
    return metrics


def metrics_in(texts: Sequence[str], conventions: Sequence[str], ks: Sequence[int]) -> list[Metric]:
    """Return each metric under each convention, without duplicates. See `parse_metrics` for cutoffs."""
    metrics = [parse_metrics(texts, convention, ks).values() for convention in conventions]
    warn_of_idle_cutoffs(texts, conventions[0], ks)
    return list(dict.fromkeys(chain.from_iterable(metrics)))


def warn_of_idle_cutoffs(texts: Sequence[str | Metric], convention: str, ks: Sequence[int]) -> None:
    """Warn if the common cutoffs have no effect because every metric has its own cutoff or takes none."""
    metrics = [(str(text), parse_metric(text, convention)) for text in expanded(texts)]
    if ks and not any(_takes_k(text, metric) for text, metric in metrics):
        warn(f"k = {', '.join(map(str, ks))} has no effect, because every metric has its own cutoff or takes none")


def _takes_k(text: str, metric: Metric) -> bool:
    """Return whether the common cutoffs apply to a metric, that is, whether it accepts a cutoff but has none."""
    return metric.cutoff is None and metric.definition.takes_cutoff and "@" not in ALIASES.get(text.lower(), text)


def split_names(text: str) -> list[str]:
    """Split `recall@5,err(max_grade=3),ndcg` at commas outside brackets. Bare numbers continue trec_eval's `P.5`."""
    parts: list[str] = []
    for part in filter(None, map(str.strip, re.split(r",(?![^(]*\))", text))):
        dotted = _CONTINUED.fullmatch(parts[-1]) if parts else None
        parts.append(dotted["name"] + part if dotted and re.fullmatch(r"[0-9]*\.?[0-9]+", part) else part)
    return parts


def expanded(texts: Iterable[str | Metric]) -> list[str | Metric]:
    """Replace named metric sets, such as `official` and `iprec11`, with their members."""
    members = (SETS.get(text.strip().lower(), (text,)) if isinstance(text, str) else (text,) for text in texts)
    return list(chain.from_iterable(members))


def list_metrics() -> list[Definition]:
    """List all metrics, built in and registered, with their formulas, parameters and sources.

    >>> [definition.name for definition in list_metrics()][:3]
    ['precision', 'recall', 'f1']
    """
    return [*CATALOGUE.values(), *registered("metric").values()]


def _as_list(text: str) -> str:
    """Return a hint on writing comma-separated whole numbers as a list."""
    parts = [part.strip() for part in text.split(",")]
    return f"; write k=[{', '.join(parts)}]" if all(part.isdigit() for part in parts) else ""


def _number_text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def _common(in_brackets: str | None) -> tuple[dict[str, str], str | None]:
    """Separate options that no formula takes (such as `level`, ir_measures' `rel`) from a metric's parameters."""
    common: dict[str, str] = {}
    others: list[str] = []
    for part in (in_brackets or "").split(","):
        match = re.fullmatch(r"\s*(judged_only|level|rel|pass_at|pass_all)\s*=\s*(.*?)\s*", part)
        name = "" if match is None else {"rel": "level"}.get(match[1], match[1])
        if match is None or not match[2] or name in common:
            others.append(part.strip())
        else:
            common[name] = match[2]
    return common, (", ".join(others) or None) if common else in_brackets


def _lacks(metric: str, parameter: str, parameters: Collection[str]) -> str:
    has = f"its parameters are {', '.join(parameters)}" if parameters else "it has no parameters"
    return f"{metric} has no parameter {parameter!r}: {has}"


class _Parser:
    """A parser for one metric text. Every error quotes the full text."""

    def __init__(self, text: str, convention: str) -> None:
        self.text = text
        self.convention = convention

    def fail(self, what: str) -> MetricError:
        return MetricError(f"metric {shown(self.text, 60)}: {what}")

    def metric(self) -> Metric:
        match = _TEXT.fullmatch(self.expand(self.text.strip()))
        if match is None:
            raise self.fail("expected name[.convention][(parameter=value)][@k], such as ndcg.coverage@10")
        definition = definition_of(match["name"])
        if definition is None:
            raise self.fail(f"unknown metric {match['name']!r}{self.hint(match['name'], match['cutoff'])}")
        common, in_brackets = _common(match["parameters"])
        parameters = self.read_pairs(definition, in_brackets)
        convention = self.read_convention(definition, match["convention"], parameters)
        return Metric(
            definition.name,
            convention,
            self.read_parameters(definition, convention, parameters),
            self.read_cutoff(definition, match["cutoff"]),
            self.read_judged_only(common.get("judged_only")),
            self.read_level(definition, convention, common.get("level")),
            self.read_passes(definition, {name: common[name] for name in PASSES if name in common}),
        )

    def hint(self, name: str, cutoff: str | None) -> str:
        """Explain the meaning of an unknown name in other tools, or suggest similar names."""
        joined = _JOINED.fullmatch(name)
        for base, k in ((name, cutoff), (joined["name"], cutoff or joined["k"]) if joined else ("", None)):
            if base in ABSENT:
                return f"; {ABSENT[base].format(at=f'@{k}' if k else '')}"
            if meant := MEANT.get(base) or (base if base in ALIASES or base in CATALOGUE else ""):
                suggestion = f"{meant}@{k}" if k else meant
                return f" (did you mean {suggestion!r}?)"
        candidates = [*names("metric"), *ALIASES, *SETS, *(f"{name}_10" for name in TREC_EVAL)]
        return near_names(name, candidates) or "; `groupgt list metrics` lists them all"

    def expand(self, text: str) -> str:
        """Resolve aliases regardless of case. A part that the alias already sets must not be repeated."""
        trec_eval, ranx, iprec = (pattern.fullmatch(text) for pattern in (IN_TREC_EVAL, _IN_RANX, _IPREC))
        if trec_eval:
            return f"{TREC_EVAL[trec_eval['name'].lower()]}@{trec_eval['k']}"
        if ranx:
            return f"rbp(p=0.{ranx[2]}){ranx[3] or ''}"
        if iprec:
            return f"iprec({', '.join(filter(None, (iprec['parameters'], 'recall=' + iprec['recall'])))})"
        while True:
            match = re.match(r"[A-Za-z][A-Za-z0-9_-]*", text)
            if match is None:
                return text
            name, tail = match[0].lower(), text[match.end() :]
            if name.startswith("retrieval_"):
                if tail.startswith("."):
                    raise self.fail("retrieval_ names are AutoRAG's and imply its convention")
                inner = name.removeprefix("retrieval_")
                target = ALIASES.get(inner, inner)
                definition = CATALOGUE.get(target)
                text = target + (".autorag" if definition and "autorag" in definition.formulas else "") + tail
            elif name in ALIASES:
                target = ALIASES[name]
                if "@" in target and tail:
                    raise self.fail(f"{name} means {target} and takes no further parameters")
                if ("." in target and tail.startswith(".")) or ("(" in target and tail.startswith("(")):
                    raise self.fail(f"{name} means {target} and takes only a cutoff")
                text = target + tail
            else:
                return name + tail

    def read_convention(self, definition: Definition, written: str | None, parameters: Mapping[str, str]) -> str | None:
        if None in definition.formulas:
            if written is not None:
                what = f"{definition.name} is the same under all conventions; write only {definition.name}"
                raise self.fail(what)
            return None
        chosen = written or self.convention
        if chosen == AUTO:
            formulas = definition.formulas
            if not parameters:
                return next(iter(formulas))
            has_all = (name for name in formulas if parameters.keys() <= formulas[name].by_name.keys())
            return next(has_all, next(iter(formulas)))
        if chosen not in definition.formulas:
            near = near_names(chosen, definition.formulas)  # type: ignore[arg-type]  # None was handled above
            raise self.fail(f"expected the convention {listed(CONVENTIONS)}, found {chosen!r}{near}")
        return chosen

    def read_pairs(self, definition: Definition, in_brackets: str | None) -> dict[str, str]:
        """Split the brackets at commas, or raise `MetricError` for a parameter that no variant of the metric has."""
        if in_brackets is not None and not in_brackets.strip():
            raise self.fail("expected parameter=value within the brackets, or no brackets")
        pairs: dict[str, str] = {}
        for part in in_brackets.split(",") if in_brackets is not None else []:
            name, _, text = (piece.strip() for piece in part.partition("="))
            if not text:
                raise self.fail(f"expected parameter=value, found {part.strip()!r}")
            if name in pairs:
                raise self.fail(f"duplicate parameter {name}")
            pairs[name] = text
        parameters = list(dict.fromkeys(chain.from_iterable(each.by_name for each in definition.formulas.values())))
        for name, text in pairs.items():
            if name not in parameters:
                raise self.fail(self.refusal(definition.name, name, text, parameters))
        return pairs

    def refusal(self, metric: str, name: str, text: str, parameters: Sequence[str]) -> str:
        """Say that a metric has no such parameter, and how to express ir_measures' parameter in groupgt."""
        what = _lacks(metric, name, parameters)
        bare = re.sub(r"\s*\([^()]*\)", "", self.text)
        if name == "dcg" and "gain" in parameters:
            gain = "(gain=exp)" if "exp" in text else ""
            return f"{what}; write {metric}{'' if metric == 'dcg' else '.trec'}{gain}{''.join(bare.partition('@')[1:])}"
        if name in ("cutoff", "k"):
            return f"{what}; write {bare.partition('@')[0]}@{text}"
        return f"{what}{near_names(name, parameters)}"

    def read_parameters(
        self, definition: Definition, convention: str | None, texts: Mapping[str, str]
    ) -> tuple[tuple[str, float | str], ...]:
        by_name = definition.formulas[convention].by_name
        if absent := next((name for name in texts if name not in by_name), None):
            formulas = definition.formulas
            others = [f"{definition.name}.{other}" for other in formulas if absent in formulas[other].by_name]
            what = _lacks(f"{definition.name}.{convention}", absent, by_name)
            raise self.fail(f"{what}; {' and '.join(others)} {'has' if len(others) == 1 else 'have'} it")
        values = {name: self.read_value(by_name[name], text) for name, text in texts.items()}
        return tuple(sorted((name, value) for name, value in values.items() if value != by_name[name].default))

    def read_value(self, parameter: Parameter, text: str) -> float | str:
        if parameter.choices:
            if text not in parameter.choices:
                raise self.fail(f"{parameter.name}: expected {parameter.expected}, found {text!r}")
            return text
        number = float(text) if re.fullmatch(_NUMBER, text, re.ASCII) else math.nan
        if not math.isfinite(number) or not parameter.holds(number):
            raise self.fail(f"{parameter.name}: expected {parameter.expected}, found {text}")
        return number

    def read_judged_only(self, text: str | None) -> bool:
        if text not in (None, "True", "False"):
            raise self.fail(f"judged_only: expected True or False, found {text}")
        return text == "True"

    def read_level(self, definition: Definition, convention: str | None, text: str | None) -> float | None:
        if text is None:
            return None
        if not definition.formulas[convention].takes_level:
            name = f"{definition.name}.{convention}" if convention else definition.name
            raise self.fail(f"{name} does not depend on a relevance level; omit level={text}")
        return float(self.read_value(LEVEL, text))

    def read_passes(self, definition: Definition, texts: Mapping[str, str]) -> tuple[str, int] | None:
        if not texts:
            return None
        if not definition.takes_passes:
            raise self.fail(f"{definition.name} cannot be counted over trials; hit_rate and complete can")
        if len(texts) > 1:
            raise self.fail(f"expected {' or '.join(texts)}, found both")
        ((name, text),) = texts.items()
        return name, int(self.read_value(PASSES[name], text))

    def read_cutoff(self, definition: Definition, written: str | None) -> int | Budget | None:
        if written is None or written == "all":
            return None
        threshold = re.fullmatch(rf"({_NUMBER}){SCORE}", written, re.ASCII)
        match = re.fullmatch(rf"([0-9]+)({'|'.join(UNITS)})?", "1" if threshold else written)
        if re.fullmatch(rf"(0+|-[0-9]+)({'|'.join(UNITS)})?", written):
            raise self.fail(f"the cutoff must be at least 1, found @{written}")
        if match is None or len(match[1]) > 16 or not 1 <= int(match[1]) <= HIGHEST_K:
            raise self.fail(
                f"expected a cutoff such as @10, @all, @2000tokens, @8000chars or @2calls, at least 1, or "
                f"@0.35score, found @{written}"
            )
        if not definition.takes_cutoff:
            raise self.fail(f"{definition.name} uses the whole ranking and takes no cutoff; write {definition.name}")
        if threshold:
            amount = float(threshold[1])
            if not math.isfinite(amount):
                raise self.fail(f"expected a finite score, found {threshold[1]}")
            return Budget(int(amount) if amount == int(amount) and abs(amount) < 1e15 else amount, SCORE)
        return Budget(int(match[1]), match[2]) if match[2] else int(match[1])
