"""Words -> schedule -> sentence, without a server: `python examples/words.py "every weekday at 9am"`, or no words for a tour."""

from __future__ import annotations

import sys

from foliot.clock import SystemClock
from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.words import examples, read_words
from foliot.domain.schedule.zone import load_zone

ZONE = "Europe/Paris"


def main() -> None:
    for phrase in sys.argv[1:] or (*examples(), "daily at 6", "evry weekday at 9am"):
        print(phrase)
        try:
            schedule = read_words(
                phrase, now=SystemClock().now(), timezone=ZONE, tz=load_zone(ZONE), zone_named=load_zone
            )
        except ScheduleInvalid as refused:
            print(f"    refused: {refused.message} {refused.hint}")
        else:
            print(f"    {schedule}\n    {say(schedule, load_zone(schedule.timezone))}")


if __name__ == "__main__":
    main()
