"""The patterns that engine and oracle are compared on: what people write, and what clock changes are known to break."""

from __future__ import annotations

from datetime import date

from tests.oracle.fields import Pattern

DAILY = tuple(Pattern(f"{minute} {hour} * * *") for hour in range(5) for minute in (0, 30))
PATTERNS = (
    *DAILY,
    # open: these follow real time
    Pattern("* * * * *"),
    Pattern("*/5 * * * *"),
    Pattern("*/15 * * * *"),
    Pattern("0 * * * *"),
    Pattern("30 * * * *"),
    Pattern("0 */2 * * *"),
    Pattern("15 */6 * * *"),
    Pattern("*/20 * * * SUN"),
    Pattern("*/30 * * * * *", seconds=True, reach=1),
    Pattern("0 */3 * * *", every_n_weeks=3, anchor=date(2026, 12, 31)),
    # closed: these name wall-clock times
    Pattern("0 0-23/2 * * *"),
    Pattern("*/15 2 * * *"),
    Pattern("*/30 1 * * *"),
    Pattern("*/4 0-3 * * *"),
    Pattern("0 0-3 * * *"),
    Pattern("0 1,2,3 * * *"),
    Pattern("10,40 1-3 * * *"),
    Pattern("59 23 * * *"),
    Pattern("45 23 * * SAT,7"),
    Pattern("30 2 * * 0"),
    Pattern("0 9 * * 1-5"),
    Pattern("30 2 * * MON-FRI"),
    Pattern("0 2 31 * *"),
    Pattern("0 0 L * *"),
    Pattern("30 1 LW * *"),
    Pattern("0 2 * * 1#1"),
    Pattern("15 2 * * SUN#2,SUN#1"),
    Pattern("0 1 * * 5L"),
    Pattern("15 2 1,15,25-31 * SUN"),  # either day
    Pattern("30 2 */2 * 0"),  # a field that starts with * never widens: both days
    Pattern("0 2 8-14 * SUN", both_days=True),
    Pattern("20 0-3/1 ? MAR,OCT,nov *"),
    Pattern("15 30 2 * * *", seconds=True),
    Pattern("*/20 59 0-2 * * *", seconds=True),
    Pattern("30 2 * * SUN", every_n_weeks=2, anchor=date(2027, 1, 3)),
    Pattern("*/30 0-3 * * *", every_n_weeks=2, anchor=date(1970, 1, 1)),
)
