"""The vocabulary: words that Foliot reads, words that it refuses with a reason, and example phrases."""

from __future__ import annotations

from enum import StrEnum

DAY_NAMES = (
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
)  # cron counts from Sunday
MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
EXAMPLES = (
    "every 10 minutes",
    "every weekday at 9am",
    "every day at 06:30",
    "every weekday at 9am and 5pm",
    "at 18:00 on fridays",
    "every monday and thursday at 7:15pm",
    "every other tuesday at 14:30",
    "every hour at :15",
    "every 15 minutes from 9:00 to 16:45 on weekdays",
    "first monday of the month at 8:00",
    "last day of the month at noon",
    "on the 1st and 15th of the month at 9am",
    "every year on 1 march at noon",
    "in 2 hours",
    "tomorrow at 6pm",
    "next friday at noon",
)


class WordKind(StrEnum):
    WORD = "word"
    NUMBER = "number"
    ORDINAL = "ordinal"
    UNIT = "unit"  # its number: seconds
    WEEKDAY = "weekday"  # its number: as in cron, Sunday = 0
    MONTH = "month"
    CLOCK = "clock"
    PAST = "past"  # :15
    HALF_OF_DAY = "half of day"  # am, pm
    DATE = "date"
    STAMP = "stamp"
    ZONE = "zone"
    END = "end"


def _same(words: str, kind: WordKind, number: int = 0) -> dict[str, tuple[WordKind, int]]:
    return dict.fromkeys(words.split(), (kind, number))


def _counted(words: str, kind: WordKind, start: int) -> dict[str, tuple[WordKind, int]]:
    return {word: (kind, number) for number, word in enumerate(words.split(), start)}


WORDS: dict[str, tuple[WordKind, int]] = {
    **_same("every each other at on in of from between to through and by clock past counting", WordKind.WORD),
    **_same(
        "last next this today tomorrow tonight after weekday weekdays weekend weekends half noon midnight",
        WordKind.WORD,
    ),
    **_same("month months quarter year years a an the run remind me please once manually", WordKind.WORD),
    **_same("hourly daily nightly weekly fortnightly monthly quarterly yearly annually", WordKind.WORD),
    **_same(
        "s sec secs second seconds", WordKind.UNIT, 1
    ),  # before a day, `parts.py` reads "second" as an ordinal
    **_same("m min mins minute minutes", WordKind.UNIT, 60),
    **_same("h hr hrs hour hours", WordKind.UNIT, 3600),
    **_same("d day days", WordKind.UNIT, 86400),
    **_same("w week weeks", WordKind.UNIT, 604800),
    **_counted("sunday monday tuesday wednesday thursday friday saturday", WordKind.WEEKDAY, 0),
    **_counted("sundays mondays tuesdays wednesdays thursdays fridays saturdays", WordKind.WEEKDAY, 0),
    **_counted("sun mon tue wed thu fri sat", WordKind.WEEKDAY, 0),
    **_counted("tues weds thurs", WordKind.WEEKDAY, 2),
    **_counted(
        "january february march april may june july august september october november december",
        WordKind.MONTH,
        1,
    ),
    **_counted("jan feb mar apr may jun jul aug sep oct nov dec", WordKind.MONTH, 1),
    **_same("sept", WordKind.MONTH, 9),
    **_counted("one two three four five six seven eight nine ten eleven twelve", WordKind.NUMBER, 1),
    **_same("fifteen", WordKind.NUMBER, 15),
    **_same("twenty", WordKind.NUMBER, 20),
    **_same("thirty", WordKind.NUMBER, 30),
    **_same("first", WordKind.ORDINAL, 1),
    **_counted("third fourth fifth", WordKind.ORDINAL, 3),
}


# Words that `rewrite.py` puts into those above, or drops; and the parts of a day, which `phrase.py` reads.
OTHER_WORDS = frozenset(
    [
        "everyday",
        "night",
        "nights",
        "business",
        "working",
        "work",
        "workday",
        "workdays",
        "workingday",
        "end",
        "start",
        "beginning",
        "top",
        "alternate",
        "fortnight",
        "per",
        "only",
        "sharp",
        "exactly",
        "precisely",
        "schedule",
        "execute",
        "trigger",
        "do",
        "fire",
        "it",
        "job",
        "task",
        "my",
        "time",
        "but",
        "except",
        "excluding",
        "until",
        "till",
        "morning",
        "mornings",
        "afternoon",
        "afternoons",
        "evening",
        "evenings",
        "twice",
        "thrice",
        "times",
        "et",
        "est",
        "edt",
        "eastern",
        "ct",
        "cdt",
        "central",
        "mt",
        "mst",
        "mdt",
        "pt",
        "pst",
        "pdt",
        "pacific",
        "cet",
        "cest",
        "eet",
        "eest",
        "wet",
        "west",
        "jst",
        "aest",
        "aedt",
        "nzst",
        "nzdt",
        "cst",
        "ist",
        "bst",
    ]
)


def _because(words: str, why: str, instead: str) -> dict[str, tuple[str, str]]:
    return dict.fromkeys(words.split(), (why, instead))


# What people do write and Foliot will not guess at: the word -> why, and what to write instead.
REFUSED: dict[str, tuple[str, str]] = {
    **_because(
        "biweekly",
        "'biweekly' can mean twice a week or every two weeks.",
        "Write 'every monday and thursday at 9am' or 'every other monday at 9am'.",
    ),
    **_because(
        "bimonthly",
        "'bimonthly' can mean twice a month or every two months.",
        "Write 'on the 1st and 15th of the month at 9am' or 'on the 1st of the month at 9am in january, march and may'.",
    ),
    **_because(
        "now", "'now' has passed when the job is saved.", "Write 'in 1 minute', or run the job manually."
    ),
    **_because(
        "o'clock",
        "A bare hour can be morning or evening.",
        "Write 'every day at 9am' or 'every day at 21:00'.",
    ),
    **_because(
        "twice thrice times often morning mornings afternoon afternoons evening evenings night nights soon later",
        "{word!r} does not say at what time.",
        "Write the times: 'every day at 9am and 5pm'.",
    ),
    **_because(
        "until till starting beginning start ending end except excluding unless for holidays business",
        "{word!r} is not part of the words of a schedule.",
        "Leave it out, and give the job start_at, end_at, max_runs, a window or a calendar.",
    ),
}
