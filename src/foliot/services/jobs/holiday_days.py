"""Public holidays of a country, as days of a calendar. The dates are stored: a later version of the data moves nothing by itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import holidays

from foliot.domain.errors import Invalid
from foliot.domain.schedule import Days


@lru_cache(maxsize=1)
def supported_countries() -> dict[str, Sequence[str]]:
    """Codes of countries, and of their parts with holidays of their own."""
    return dict(sorted(holidays.list_supported_countries(include_aliases=False).items()))


def country_days(country: str, subdivision: str | None, first_year: int, years: int) -> tuple[Days, ...]:
    """Return the public holidays of these years, with their names in English where the data has them."""
    code = country.upper()
    parts = supported_countries().get(code)
    if parts is None:
        raise Invalid(
            f"The holidays of the country {country!r} are not known.",
            hint="Use a code of two letters, such as ES, DE or AR. GET /calendars/countries lists them.",
            pointer="/country",
        )
    if subdivision is not None and subdivision not in parts:
        known = ", ".join(parts[:12]) + (" …" if len(parts) > 12 else "")
        raise Invalid(
            f"{code} has no part {subdivision!r}.",
            hint=f"Use one of {known}." if parts else "Leave it out: this country has none.",
            pointer="/subdivision",
        )
    found = holidays.country_holidays(
        code, subdiv=subdivision, years=range(first_year, first_year + years), expand=False, language="en_US"
    )
    if not found:
        raise Invalid(f"No holidays of {code} are known in these years.", pointer="/first_year")
    return tuple(Days(day, None, name) for day, name in sorted(found.items()))
