"""A glance at many ids doubts what no id may hold and what is blank, and hardly anything else."""

from __future__ import annotations

import numpy as np
import pytest

from groupgt.model.validity import are_ids, finite_number, has_plain_letters, id_fault, plain

# From which to which character a glance doubts: controls, blanks, separators, what stands between them, surrogates.
DOUBTED = (
    (0x00, 0x1F), (0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x202F), (0x205F, 0x205F),
    (0x3000, 0x3000), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
)  # fmt: skip
LOOKED_AT = [
    *range(0x180),
    *range(0x1670, 0x1690),
    *range(0x1FF0, 0x2070),
    *range(0x2FF0, 0x3010),
    *range(0xD7F0, 0xD810),
    *range(0xDFF0, 0xE010),
    *range(0xFEF0, 0x10010),
    0x1F600,
    0x10FFFF,
]


@pytest.mark.parametrize("beside", ["a", "é", "ㅏ", "한"])
def test_which_letters_a_glance_doubts(beside: str) -> None:
    wrong = []
    for code in LOOKED_AT:
        doubted = any(first <= code <= last for first, last in DOUBTED)
        if has_plain_letters(f"{beside}{chr(code)}{beside}") == doubted:
            wrong.append(f"U+{code:04X}")
    assert wrong == []


def test_what_is_doubted_is_all_that_no_id_may_hold() -> None:
    for code in LOOKED_AT:
        if id_fault(f"a{chr(code)}b") or (id_fault(chr(code)) and code != 0x20):
            assert any(first <= code <= last for first, last in DOUBTED), f"U+{code:04X}"


@pytest.mark.parametrize("letter", ["", "é", "한"])
def test_blanks_beside_one_another(letter: str) -> None:
    assert has_plain_letters(f"a b{letter}")
    assert has_plain_letters(f"a!b{letter}")
    assert has_plain_letters(f"ab{letter}")
    assert not has_plain_letters(f"a  b{letter}")
    assert not has_plain_letters(f"a b\x1f{letter}")


def test_what_is_doubted_is_looked_at_one_by_one() -> None:
    assert are_ids([" a", "b\u202db"])
    assert not are_ids([" a", "\u2003"])


def test_bools_are_no_numbers() -> None:
    assert [finite_number(value) for value in (True, False, "1", 1, np.float32(0.5))] == [None, None, None, 1.0, 0.5]


def test_arrays_become_lists_and_sequences_stay() -> None:
    pair = ("a", "b")
    assert plain(pair) is pair
    assert plain(np.array(["a", "b"])) == ["a", "b"]
    assert isinstance(plain(np.array(["a", "b"])), list)
