"""Amounts of usage: exact decimal numbers, never negative. Standard library only: child processes of workers import this."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

DECIMALS = 9
LARGEST = Decimal(10) ** 15
LONGEST = 50  # characters of an amount
MOST_UNITS = 20  # in one report
UNIT = r"^[a-z][a-z0-9_.-]{0,39}$"
_UNIT = re.compile(UNIT, re.ASCII)


def read_amount(value: object) -> Decimal:
    """Return the amount, in one form for equal values. Raise ValueError with a sentence.

    Text, whole numbers and decimals are taken exactly. A float is rounded: its last digits come from its binary form.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("An amount is a number, or the text of one.")  # noqa: TRY004  # callers read one kind of error
    text = str(value)
    try:
        # Decimal also reads 1_000 and digits of other scripts, which a reader may take for something else.
        amount = Decimal(text if len(text) <= LONGEST and text.isascii() and "_" not in text else "")
    except InvalidOperation:
        raise ValueError("This is not a number.") from None
    if not amount.is_finite() or not 0 <= amount < LARGEST:
        raise ValueError(f"An amount is at least 0 and less than {LARGEST:,}.")
    rounded = round(amount, DECIMALS)
    if rounded != amount and not isinstance(value, float):
        raise ValueError(f"An amount has at most {DECIMALS} decimals.")
    return Decimal(write_amount(abs(rounded)))  # without the sign of -0


def read_sum(value: object) -> Decimal:
    """Return a sum of amounts, which has no largest value. Raise ValueError where it is none."""
    try:
        total = Decimal(str(value))
    except InvalidOperation:
        raise ValueError("This is not a number.") from None
    if not total.is_finite() or total < 0:
        raise ValueError("A sum of amounts is at least 0.")
    return total


def write_amount(amount: Decimal) -> str:
    """Format without an exponent and without zeros at the end."""
    text = f"{amount:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def read_usage(given: Mapping[str, object]) -> dict[str, Decimal]:
    """Return the amounts by unit; those of nothing are left out. Raise ValueError with a sentence."""
    if len(given) > MOST_UNITS:
        raise ValueError(f"At most {MOST_UNITS} units can be reported at once.")
    found: dict[str, Decimal] = {}
    for unit, value in given.items():
        if not _UNIT.fullmatch(str(unit)):
            raise ValueError(
                f"The unit {str(unit)[:60]!r} must begin with a lower-case letter and have only lower-case letters, digits "
                "and _ . -, at most 40."
            )
        try:
            amount = read_amount(value)
        except ValueError as error:
            raise ValueError(f"{unit}: {error}") from None
        if amount:
            found[unit] = amount
    return found


def add_usage(known: Mapping[str, Decimal], more: Mapping[str, Decimal]) -> dict[str, Decimal]:
    """Return the sum. Raise ValueError where it has too many units or an amount grows too large."""
    total = dict(known)
    for unit, amount in more.items():
        total[unit] = total.get(unit, Decimal(0)) + amount
    return read_usage(total)
