"""The policy that decides how undefined, missing and suspicious data are handled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from groupgt.errors import ConfigError, display, listed, near_names, refuse
from groupgt.model.validity import GRADE_LIMIT, finite_number, number_of, plain
from groupgt.options import Doc, Rule, check_options, choices, options_of


def _level(value: Any) -> float | None:
    """Convert a level to a number, even from text, or return None if it is not a grade above 0."""
    number = number_of(value) if isinstance(value, str) else finite_number(value)
    return number if number is not None and 0 < number <= GRADE_LIMIT else None


def _importance(value: Any) -> tuple[str, ...] | None:
    """Parse importance levels from a list or a +-separated string, or return None for anything else."""
    names = value.split("+") if isinstance(value, str) else plain(value)
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name.strip() for name in names):
        return None
    return tuple(dict.fromkeys(name.strip() for name in names))


LEVEL = Rule("a grade above 0, up to 2^31", _level, {"type": "number", "exclusiveMinimum": 0}, _level)
IMPORTANCE = Rule(
    "a list of importances, such as [vital]",
    lambda value: _importance(value) is not None,
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    _importance,
)


@dataclass(frozen=True)
class Policy:
    """Rules for handling invalid or ambiguous data, with one field per case. Most fields offer choices.

    >>> Policy.of({"missing": "skip", "level": 2}).changes
    'missing=skip, level=2'
    """

    empty_groups: Annotated[
        Literal["error", "drop", "unmeetable"],
        Doc(
            "Refuse or drop blank ids, and empty groups in queries that have other groups. With unmeetable, a "
            "declared group without a relevant alternative counts as one that cannot be covered."
        ),
    ] = "error"
    flat_gt: Annotated[
        Literal["error", "and", "or"], Doc('Refuse a flat ["a", "b"], or read it as groups (and) or as one group (or).')
    ] = "error"
    missing: Annotated[
        Literal["zero", "skip", "error"], Doc("Score judged queries without results as 0, skip them, or refuse them.")
    ] = "zero"
    extra: Annotated[
        Literal["ignore", "error"], Doc("Ignore results of queries without ground truth, or refuse them.")
    ] = "ignore"
    duplicates: Annotated[
        Literal["penalize", "drop", "error", "keep"],
        Doc(
            "Count a repeated id as non-relevant at its rank (penalize), remove it so that later results move up "
            "(drop), refuse it, or let it hit again as in AutoRAG (keep, only under the autorag convention)."
        ),
    ] = "penalize"
    unjudged: Annotated[
        Literal["nonrelevant", "drop"],
        Doc(
            "Count unjudged results (those with no grade or a negative one) as non-relevant, or remove them so that "
            "later results move up (drop). As with trec_eval's -J, this gives condensed lists. "
            "Dropping results needs the id labeller."
        ),
    ] = "nonrelevant"
    ties: Annotated[
        Literal["id", "input"],
        Doc("Order equal scores by id, in descending byte order as in trec_eval, or keep their input order."),
    ] = "id"
    undefined: Annotated[
        Literal["skip", "zero"],
        Doc(
            "If a judged query has no relevant document, or none of a selected importance, leave it out of means "
            "(skip) or score it 0 as in trec_eval (zero)."
        ),
    ] = "skip"
    absent: Annotated[
        Literal["warn", "ignore", "error"],
        Doc("Warn about ground truth ids that no search can find because the corpus lacks them, or refuse them."),
    ] = "warn"
    level: Annotated[
        float | None, LEVEL, Doc("Lowest relevant grade, as with trec_eval's -l; null for any grade above 0.")
    ] = None
    importance: Annotated[
        tuple[str, ...],
        IMPORTANCE,
        Doc("Evaluate only groups of these importances, such as [vital] (default: all groups)."),
    ] = ()

    def __post_init__(self) -> None:
        for name, value in check_options(self, "policy ").items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, value: Policy | str | Sequence[str] | Mapping[str, Any] | None) -> Policy:
        """Read a policy from a `Policy`, text in `--policy` syntax, or a mapping of fields; None selects the default.

        Text contains a preset (`autorag`, `trec`), fields, or both; a mapping may also contain a preset.

        >>> Policy.of("trec,missing=zero") == Policy.of(["trec", "missing=zero"])
        True
        >>> Policy.of("trec,missing=zero") == Policy.of({"preset": "trec", "missing": "zero"})
        True
        """
        if value is None:
            return PRESETS["default"]
        if isinstance(value, Policy):
            return value
        texts = [value] if isinstance(value, str) else value
        if isinstance(texts, (list, tuple)) and all(isinstance(text, str) for text in texts):
            fields = (part.strip().partition("=") for joined in texts for part in joined.split(","))
            # An entry without a field name is a preset.
            value = dict((name.strip(), text.strip()) if equals else ("preset", name) for name, equals, text in fields)
        if not isinstance(value, Mapping):
            expected = "a preset (such as trec) or settings (such as missing=zero)"
            raise ConfigError(f"policy: expected {expected}, found {display(value)}")
        options = {str(key): choice for key, choice in value.items()}
        preset = options.pop("preset", "default")
        if not isinstance(preset, str) or preset not in PRESETS:
            raise ConfigError(f"policy: expected {listed(PRESETS)}, found {preset!r}{near_names(str(preset), PRESETS)}")
        known = f"known fields: {', '.join(options_of(cls))}"
        unknown = [name for name in options if name not in options_of(cls)]
        faults = (("policy", f"unknown field {name!r}; {known}{near_names(name, options_of(cls))}") for name in unknown)
        refuse(faults, ConfigError)
        return replace(PRESETS[preset], **options)

    @property
    def looks_at_all(self) -> bool:
        """True if labelling checks all results for repeats, not only the relevant ones."""
        return self.duplicates in ("drop", "error")

    @property
    def of_checks(self) -> Policy:
        """This policy, but with empty groups and blank ids dropped, so that checks can count them."""
        return replace(self, empty_groups="drop") if self.empty_groups == "error" else self

    @property
    def changes(self) -> str:
        """Fields that differ from their defaults.

        >>> Policy(missing="skip").changes
        'missing=skip'
        """
        usual = PRESETS["default"].as_texts
        return ", ".join(f"{name}={text}" for name, text in self.as_texts.items() if text != usual.get(name))

    @property
    def as_texts(self) -> dict[str, str]:
        """Fields as text for `--policy`. `unjudged`, `absent`, `level` and `importance` are included only if set."""
        texts = {name: str(getattr(self, name)) for name in CHOICES}
        texts = {name: text for name, text in texts.items() if (name, text) not in UNSAID}
        if self.level is not None:
            texts["level"] = f"{self.level:g}" if float(f"{self.level:g}") == self.level else repr(self.level)
        if self.importance:
            texts["importance"] = "+".join(self.importance)
        return texts

    def __str__(self) -> str:
        return ", ".join(f"{name}={text}" for name, text in self.as_texts.items())


# Usual choices that are not written.
UNSAID = (("unjudged", "nonrelevant"), ("absent", "warn"))
_CHOICES = {name: choices(option.hint) for name, option in options_of(Policy).items()}
CHOICES: dict[str, tuple[str, ...]] = {name: values for name, values in _CHOICES.items() if values}

PRESETS: dict[str, Policy] = {
    "default": Policy(),
    "autorag": Policy(flat_gt="or", missing="skip", duplicates="keep", ties="input"),
    "trec": Policy(missing="skip", duplicates="error", ties="id", undefined="zero"),
}
