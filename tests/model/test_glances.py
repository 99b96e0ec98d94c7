"""A glance at many ids doubts what no id may hold and what is blank, and hardly anything else."""

from __future__ import annotations

import numpy as np
import pytest

from groupgt.model.validity import (
    LONGEST_ID,
    are_ids,
    are_plainly_ids,
    finite_number,
    has_plain_letters,
    holds_odd_letters,
    id_fault,
    id_text,
    is_integer,
    plain,
)

# From which to which character a glance doubts: controls, blanks, separators, surrogates, the byte order mark.
DOUBTED = (
    (0x00, 0x1F), (0x7F, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
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
# A glance at UTF-8 looks at two bytes of a character: it doubts all that share them.
DOUBTED_IN_BYTES = (
    (0x00, 0x1F), (0x7F, 0xA0), (0x1680, 0x16BF), (0x2000, 0x207F), (0x3000, 0x303F), (0xD800, 0xDFFF),
    (0xFEC0, 0xFEFF),
)  # fmt: skip
BLOCKS_BESIDE = (0x1640, 0x167F, 0x16C0, 0x16FF, 0x1FC0, 0x2080, 0x20BF, 0x2FC0, 0x3040, 0x307F, 0xFE80, 0xFEBF, 0xFF3F)


@pytest.mark.parametrize("beside", ["a", "é", "ㅏ", "한"])
def test_which_letters_a_glance_doubts(beside: str) -> None:
    wrong = []
    for code in LOOKED_AT:
        doubted = any(first <= code <= last for first, last in DOUBTED)
        if has_plain_letters(f"{beside}{chr(code)}{beside}") == doubted:
            wrong.append(f"U+{code:04X}")
    assert wrong == []


@pytest.mark.parametrize("beside", ["a", "é", "한"])
def test_which_letters_a_glance_at_bytes_doubts(beside: str) -> None:
    wrong = []
    for code in (*LOOKED_AT, *BLOCKS_BESIDE):
        doubted = any(first <= code <= last for first, last in DOUBTED_IN_BYTES)
        if are_plainly_ids([f"{beside}{chr(code)}{beside}"]) == doubted:
            wrong.append(f"U+{code:04X}")
    assert wrong == []


def test_a_glance_at_nothing_and_at_ascii_has_no_doubt() -> None:
    assert has_plain_letters("")
    assert are_plainly_ids(["a", "b c"])
    assert not holds_odd_letters(np.zeros(0, dtype=np.uint8))
    assert not holds_odd_letters(np.frombuffer(b"a ~", dtype=np.uint8))


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


def test_the_length_of_an_id() -> None:
    """A glance is sure of all but the very longest, wherever in the list it is."""
    assert LONGEST_ID == 65_536
    assert id_fault("x" * 65_536) is None
    assert id_fault("x" * 65_537) == "is longer than 65,536 bytes"
    for size, sure in ((65_535, True), (65_536, False)):
        assert are_plainly_ids(["x" * size, "b"]) is sure
        assert are_plainly_ids(["a", "x" * size]) is sure
        assert are_ids(["a", "x" * size])


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (0x00, "a NUL character"),
        (0x01, "the control character U+0001"),
        (0xD7FF, None),
        (0xD800, "a lone surrogate"),
        (0xDFFF, "a lone surrogate"),
        (0xE000, None),
        (0x2028, "the line separator U+2028"),
        (0x2029, "the paragraph separator U+2029"),
        (0xFEFF, "the byte order mark U+FEFF"),
    ],
)
def test_what_an_id_may_not_hold_is_named(code: int, name: str | None) -> None:
    assert id_fault(f"a{chr(code)}b") == (name and f"contains {name}")


class Seven:
    """An integer of some other library."""

    def __index__(self) -> int:
        return 7


# NumPy called its bools so, and they were indices once.
old_bool = type("bool_", (Seven,), {})


def test_integers_of_other_libraries() -> None:
    assert [id_text(value) for value in (Seven(), np.uint8(7), old_bool(), np.bool_(True), True, b"7")] == [
        *("7", "7", None, None, None, None),
    ]
    assert is_integer(Seven())
    assert not is_integer(old_bool())
    assert finite_number(Seven()) == 7.0
    assert [finite_number(value) for value in (True, "2", float("nan"))] == [None] * 3
    # float would take these.
    assert finite_number(b"7") is None
    assert finite_number(bytearray(b"7")) is None


def test_bools_are_no_numbers() -> None:
    assert [finite_number(value) for value in (True, False, "1", 1, np.float32(0.5))] == [None, None, None, 1.0, 0.5]


def test_arrays_become_lists_and_sequences_stay() -> None:
    pair = ("a", "b")
    assert plain(pair) is pair
    assert plain(np.array(["a", "b"])) == ["a", "b"]
    assert isinstance(plain(np.array(["a", "b"])), list)
