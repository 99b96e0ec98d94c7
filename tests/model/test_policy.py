"""Policies, as users spell them."""

from __future__ import annotations

import pytest

import groupgt


def test_policies_are_read_from_names_and_mappings() -> None:
    assert groupgt.Policy.of("trec").missing == "skip"
    assert groupgt.Policy.of({"preset": "autorag", "missing": "zero"}) == groupgt.Policy(
        missing="zero", duplicates="keep", ties="input"
    )
    for bad in ({"missin": "skip"}, {"missing": "skp"}, "autorga"):
        with pytest.raises(groupgt.ConfigError, match="did you mean"):
            groupgt.Policy.of(bad)
