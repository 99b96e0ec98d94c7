"""Settings of a comparison: what they refuse, and that options, keywords and schemas follow from their fields."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

import groupgt
from groupgt import ConfigError
from groupgt.cli.compare import compare_command
from groupgt.comparison.settings import Settings
from groupgt.comparison.tests import CORRECTIONS, TESTS, CorrectionName, TestName
from groupgt.options import choices, options_of


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"test": "randomisation"}, "did you mean 'randomization'"),
        ({"correction": "fdr"}, "expected holm, bonferroni, bh or none"),
        ({"alpha": 0}, "alpha: expected a number above 0 and below 1, found 0"),
        ({"confidence": 95}, "confidence: expected a number above 0, at most 0.9999, found 95"),
        ({"resamples": 0}, "resamples: expected a whole number from 1"),
        ({"resamples": 10.5}, "resamples: expected a whole number"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"correction": []}, "correction: expected holm"),
        ({"pairs": "x"}, "pairs: expected true or false"),
        ({"baseline": 5}, "baseline: expected one of base, other, found 5"),
        ({"baseline": "bse"}, r"baseline: expected one of base, other, found 'bse' \(did you mean 'base'"),
    ],
)
def test_settings_that_are_none(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        groupgt.compare({"q": [["a"]]}, {"base": {"q": ["a"]}, "other": {"q": ["x"]}}, ["recall"], **options)


def test_all_settings_at_fault_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        Settings(test="x", correction="y", alpha=2, resamples=0)
    assert error.value.total == 4


def test_keywords_of_compare_are_the_settings() -> None:
    """A new setting is a field, and a keyword of the same name and default."""
    keywords = inspect.signature(groupgt.compare).parameters
    assert {option.name: option.default for option in options_of(Settings).values()} == {
        name: keywords[name].default for name in options_of(Settings)
    }


def test_options_of_the_command_are_the_settings() -> None:
    options = {option.name: option for option in compare_command.params}
    for setting in options_of(Settings).values():
        option = options[setting.name]
        assert (option.default, option.help) == (setting.default, setting.description)
        assert option.opts == [f"--{setting.name.replace('_', '-')}"]
        if choices(setting.hint):
            assert tuple(option.type.choices) == choices(setting.hint)


def test_every_named_test_and_correction_is_there() -> None:
    assert set(get_args(TestName)) == set(TESTS)
    assert set(get_args(CorrectionName)) == set(CORRECTIONS)
