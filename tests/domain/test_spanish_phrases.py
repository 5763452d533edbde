"""Spanish phrases with their meaning: the English phrase that means the same, or refused.

It is Wednesday 3 June 2026, noon in Paris. Each Spanish phrase is read to the very schedule of the English one beside it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.kinds import Schedule
from foliot.domain.schedule.words import read_words
from foliot.domain.schedule.words.spanish_vocabulary import EXAMPLES, PHRASES
from foliot.domain.schedule.zone import load_zone

PARIS = "Europe/Paris"
NOW = datetime(2026, 6, 3, 10, tzinfo=UTC)
TABLE = """
cada lunes a las 9 = every monday at 9am
todos los lunes a las 9 = every monday at 9am
los lunes a las 9:30 = mondays at 9:30am
cada día a las 9 = every day at 9am
todos los días a las 9 de la mañana = every day at 9am
todos los días a las nueve de la noche = every day at 9pm
todos los días a las 5 de la tarde = every day at 5pm
todos los días a las 3 de la madrugada = every day at 3am
todos los días a las 12 de la noche = every day at 00:00
todos los días a las 18:30 = every day at 18:30
todos los días a las 18h = every day at 18:00
todos los días a las 9 y media = every day at 9:30am
todos los días a las 9 y cuarto = every day at 9:15am
todos los días a las 9 menos cuarto = every day at 8:45am
todos los días a las 9 y 40 = every day at 9:40am
todos los días a las 9 am = every day at 9am
todos los días a las 9 y a las 17 = every day at 9am and 5pm
todos los días a las 8, a las 13 y a las 20 = every day at 8am, 1pm and 8pm
dos veces al día a las 8 y a las 20 = twice a day at 8am and 8pm
diariamente a las 10 = daily at 10am
a las 9 todos los días = every day at 9am
de lunes a viernes a las 8:30 = monday to friday at 8:30am
entre semana a las 8:30 = weekdays at 8:30am
todos los días laborables a las 8 = every weekday at 8am
cada día hábil a las 8 = every weekday at 8am
los fines de semana a las 11 = weekends at 11am
los lunes y miércoles a las 7 de la tarde = mondays and wednesdays at 7pm
cada lunes, miércoles y viernes a las 7 = every monday, wednesday and friday at 7am
los sábados y domingos al mediodía = saturdays and sundays at noon
todos los días excepto los domingos a las 10 = every day except sunday at 10am
cada día menos el sábado a las 10 = every day except saturday at 10am
cada dos semanas el lunes a las 9 = every 2 weeks on monday at 9am
cada semana el martes a las 9 = every week on tuesday at 9am
cada minuto = every minute
cada 10 minutos = every 10 minutes
cada diez minutos = every 10 minutes
cada 30 segundos = every 30 seconds
cada hora = every hour
cada 2 horas = every 2 hours
cada media hora = every half hour
cada 1 horas y 30 minutos = every 1 hour and 30 minutes
cada 15 minutos de 9 a 17 = every 15 minutes from 9am to 5pm
cada 15 minutos de 9:00 a 16:45 = every 15 minutes from 9:00 to 16:45
cada 30 minutos entre las 8 y las 18 entre semana = every 30 minutes between 8am and 6pm on weekdays
cada hora desde las 9 hasta las 18 = every hour from 9am to 6pm
el primer lunes de cada mes a las 8:00 = first monday of the month at 8:00
el último viernes del mes a las 17:00 = last friday of the month at 17:00
el último día del mes a las 11 de la noche = last day of the month at 11pm
a fin de mes a las 23:00 = last day of the month at 23:00
el día 1 de cada mes a las 9 = on the 1st of the month at 9am
el 21 de cada mes a las 9 = on the 21st of the month at 9am
el primero de cada mes a medianoche = on the 1st of the month at midnight
los días 1 y 15 de cada mes a las 9 = on the 1st and 15th of the month at 9am
cada mes el día 3 a las 9 = every month on the 3rd at 9am
todos los meses el día 11 a las 9 = every month on the 11th at 9am
cada año el 1 de marzo al mediodía = every year on 1 march at noon
cada 1 de enero a las 00:05 = every january 1st at 00:05
todos los lunes a las 9 en enero y julio = every monday at 9am in january and july
cada lunes a las 9 de junio a agosto = every monday at 9am in june to august
en 2 horas = in 2 hours
dentro de una hora = in 1 hour
dentro de media hora = in half an hour
recuérdame en 20 minutos = remind me in 20 minutes
por favor ejecuta cada hora = please run every hour
hoy a las 23:00 = today at 11pm
mañana a las 9 = tomorrow at 9am
mañana por la mañana a las 9 = tomorrow morning at 9
pasado mañana a las 18:00 = the day after tomorrow at 18:00
esta noche a las 21:00 = tonight at 9pm
el próximo viernes al mediodía = next friday at noon
este viernes a las 17:00 = this friday at 5pm
el viernes que viene a las 17:00 = next friday at 5pm
el 3 de marzo de 2027 a las 9 = on 3 march 2027 at 9am
CADA LUNES A LAS 9 = every monday at 9am
cada lunes a las 9 America/Bogota = every monday at 9am America/Bogota
manualmente = manually
"""
MEANINGS = [tuple(line.split(" = ")) for line in TABLE.strip().splitlines()]
REFUSED = [
    ("cada lunes a las 5", "can be morning or evening"),
    ("cada lunes a las 12", "can be morning or evening"),
    ("cada lunes a las 9 y 17", "one time or two"),
    ("cada 15 minutos de 9 a 5", "morning or evening"),
    ("todos los días a las 25", "not a time of day"),
    ("todos los días a las 9 de la noche y hola", "hola"),
    ("todos los días a las 11 de la tarde", "not a time of the tarde"),
    ("el viernes a las 9", "one day or every week"),
    ("quincenalmente los lunes", "quincenalmente"),
    ("cada hora y media", "media"),
    ("cada 3 meses el día 1 a las 9", "Months and years differ"),
    ("cada lunes a las", "'a' here"),
    ("cada 15 minutos de 9", "no end"),
]


def read(text: str) -> Schedule:
    return read_words(text, now=NOW, timezone=PARIS, tz=load_zone(PARIS), zone_named=load_zone)


@pytest.mark.parametrize(("spanish", "english"), MEANINGS)
def test_a_spanish_phrase_means_the_same_as_the_english_one(spanish: str, english: str) -> None:
    assert read(spanish) == read(english)


@pytest.mark.parametrize(("spanish", "reason"), REFUSED)
def test_an_unclear_spanish_phrase_is_refused_with_a_reason_and_a_hint(spanish: str, reason: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        read(spanish)
    assert reason in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_in_hints_are_understood(example: str) -> None:
    read(example)


WORDS = sorted({word for pattern in PHRASES for word in pattern.split() if word.isalpha()})


@given(
    st.lists(st.sampled_from([*WORDS, "9", "17:30", "lunes", "marzo", "a las", ","]), max_size=9).map(
        " ".join
    )
)
def test_any_words_are_read_or_refused(text: str) -> None:
    with suppress(ScheduleInvalid):
        read(text)
