"""Amounts of usage are exact, and only what every reader takes for the same number is one."""

from __future__ import annotations

from decimal import Decimal

import pytest

from foliot.wire.amounts import read_amount, write_amount


@pytest.mark.parametrize(
    ("value", "amount"), [(0, "0"), ("0.10", "0.1"), ("5e6", "5000000"), (0.1 + 0.2, "0.3"), ("0.000000001", "0.000000001"), ("-0", "0")]
)  # fmt: skip
def test_numbers_and_their_text_are_amounts(value: object, amount: str) -> None:
    assert read_amount(value) == Decimal(amount)
    assert write_amount(read_amount(value)) == amount


@pytest.mark.parametrize(
    "value",
    [-1, "-1", "NaN", "Infinity", "1e400", 1e308, 10**40, "1e-50", True, None, [], "", "abc", "1_000", "\uff11", "\u0663", "1" * 60],
)  # fmt: skip
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"(?i)number|amount"):
        read_amount(value)
