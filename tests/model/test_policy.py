"""Policies, as users spell them."""

from __future__ import annotations

import pytest

import groupgt
from groupgt import ConfigError, Policy
from groupgt.model.policy import CHOICES


def test_policies_are_read_from_names_and_mappings() -> None:
    assert groupgt.Policy.of("trec").missing == "skip"
    assert groupgt.Policy.of({"preset": "autorag", "missing": "zero"}) == groupgt.Policy(
        flat_gt="or", missing="zero", duplicates="keep", ties="input"
    )
    for bad in ({"missin": "skip"}, {"missing": "skp"}, "autorga"):
        with pytest.raises(groupgt.ConfigError, match="did you mean"):
            groupgt.Policy.of(bad)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5, "policy: expected a preset (such as trec) or settings (such as missing=zero), found 5"),
        (["trec", 5], "policy: expected a preset (such as trec) or settings (such as missing=zero), found ['trec', 5]"),
        (["trec", "mising=zero"], "policy: unknown field 'mising'; known fields: empty_groups, flat_gt, missing"),
        ("trec,", "policy: expected default, autorag or trec, found ''"),
        ({"preset": ["trec"]}, "policy: expected default, autorag or trec, found ['trec']"),
        ("tre", "policy: expected default, autorag or trec, found 'tre' (did you mean 'trec'?)"),
        ({"mising": "zero"}, "policy: unknown field 'mising'; known fields: empty_groups, flat_gt, missing"),
        ({"missing": "skp"}, "policy missing: expected zero, skip or error, found 'skp' (did you mean 'skip'?)"),
        ({"ties": ["id"]}, "policy ties: expected id or input, found ['id']"),
    ],
)
def test_policies_that_are_none(value: object, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        Policy.of(value)  # type: ignore[arg-type]
    assert words in str(error.value)


def test_policies_are_spelled_as_in_the_shell() -> None:
    expected = Policy.of({"preset": "trec", "missing": "zero", "level": 2, "importance": ["vital", "okay"]})
    text = "trec,missing=zero, level=2,importance=vital+okay"
    for spelled in (text, text.split(","), tuple(text.split(",")), [text], str(expected)):
        assert Policy.of(spelled) == expected
    assert Policy.of([]) == Policy()
    assert Policy.of(["missing=zero", "missing=skip"]).missing == "skip"
    truth, run = {"1": [["a"]], "2": [["b"]]}, {"1": ["a"]}
    for spelled in ("trec,missing=zero", ["trec", "missing=zero"]):
        assert groupgt.evaluate(truth, run, ["recall.trec@1"], policy=spelled).means == {"recall.trec@1": 0.5}


def test_all_fields_at_fault_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        Policy.of({"missing": "x", "ties": "y", "extra": "z"})
    assert error.value.total == 3
    with pytest.raises(ConfigError) as error:
        Policy.of({"mising": "x", "tie": "y"})
    assert error.value.total == 2


def test_a_preset_is_where_a_policy_starts() -> None:
    assert Policy.of(None) == Policy.of("default") == Policy.of({}) == Policy()
    assert Policy.of({"preset": "trec", "missing": "zero"}) == Policy(duplicates="error", undefined="zero")
    assert Policy.of("autorag") == Policy(flat_gt="or", missing="skip", duplicates="keep", ties="input")
    policy = Policy(extra="error")
    assert Policy.of(policy) is policy
    text = "empty_groups=error, flat_gt=error, missing=zero, extra=error, duplicates=penalize, ties=id, undefined=skip"
    assert str(policy) == text
    longer = Policy(absent="error", level=2, importance=("vital", "okay"))
    assert str(longer).endswith("undefined=skip, absent=error, level=2, importance=vital+okay")
    assert longer.changes == "absent=error, level=2, importance=vital+okay"
    assert Policy(level=0.1 + 0.2).changes == "level=0.30000000000000004"
    assert Policy.of(dict(longer.as_texts)) == longer


def test_every_field_has_its_default_among_its_choices() -> None:
    assert CHOICES["duplicates"] == ("penalize", "drop", "error", "keep")
    assert all(getattr(Policy(), name) in choices for name, choices in CHOICES.items())
