"""Part the task of a sentence from its schedule: in "check the deployment every 10 minutes" the task is "check the deployment".

A task is a known verb with its objects, before the schedule or behind it. The rest must be a whole schedule. A task holds no word that
could say something about times: then the sentence is refused, because a word of the schedule might be lost in it.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from foliot.domain.schedule.words.vocabulary import OTHER_WORDS, REFUSED, WORDS

_VERBS = frozenset(
    """
    aggregate analyse analyze archive ask audit back backup bill book build buy calculate call charge check clean cleanup clear close collect compile
    compress copy count crawl create delete deploy download email empty export fetch file find flush generate get import inspect invoice load look
    mail make merge message migrate monitor move notify open pay ping poll post prepare print process publish pull purge push query read rebuild
    recalculate reconcile refresh reindex reload remove renew reply report reset restart restore retry review rotate run save scan scrape send ship
    show sort submit summarise summarize sweep sync synchronise synchronize tell test tidy track transfer truncate turn update upload vacuum validate
    verify warm watch water write
    actualiza actualizar archiva archivar borra borrar comprueba comprobar copia copiar envia enviar genera generar importa importar limpia limpiar
    llama llamar manda mandar paga pagar publica publicar reinicia reiniciar revisa revisar sincroniza sincronizar verifica verificar
    """.split()  # noqa: SIM905  # easier to extend than a list
)
# Words of the vocabulary that a task may hold: they say nothing about times there.
_HARMLESS = frozenset("a an and business end it job me my task the to top work".split())  # noqa: SIM905
# Conditions and negations: Foliot would leave them out.
_CONDITIONS = frozenset(
    """
    about again always around before daytime depending during else ever hardly if instead maybe never no nor not or rarely seldom since skip
    sometimes stop than then twice unless usually when whenever while without
    si no nunca cuando mientras salvo sin antes despues siempre
    """.split()  # noqa: SIM905
)
_WORD = re.compile(r"[^\W\d_](?:[\w'\u2019.-]*[\w])?")
_SCHEDULE_STARTS = frozenset(
    """
    every each at on in by from between daily hourly nightly weekly fortnightly monthly quarterly yearly annually everyday once today tomorrow
    tonight next this first last weekdays weekends
    cada todos todas diariamente mañana manana hoy dentro en
    """.split()  # noqa: SIM905
)
_REMIND = frozenset({"remind", "recuérdame", "recuerdame"})


def split_task(text: str) -> tuple[str, str] | None:
    """Return the task, and the text with blanks in its place. None: there is no task that can be parted from a schedule."""
    words = list(_WORD.finditer(text))
    first = next((at for at, word in enumerate(words) if word.group().lower() in _VERBS), None)
    if first is None or len(words) < first + 2:
        return None
    start = words[first].start()
    if first == 0 or (words[0].group().lower() in _REMIND | {"please"} and not _has_start(words[:first])):
        behind = next(
            (word.start() for word in words[first + 1 :] if word.group().lower() in _SCHEDULE_STARTS), None
        )
        if behind is None:
            return None
        opening, task, schedule = text[:start], text[start:behind], text[behind:]
        rest = " " * (len(opening) + len(task)) + schedule
    else:
        before = words[first - 1]
        cut = before.start() if before.group().lower() == "to" else start
        task = text[start:]
        rest = text[:cut] + " " * (len(text) - cut)
    task = task.strip(" ,.;:")
    return None if _says_more(task) else (task, rest)


def _has_start(words: list[re.Match[str]]) -> bool:
    return any(word.group().lower() in _SCHEDULE_STARTS for word in words)


def _says_more(task: str) -> bool:
    """Return whether the task could hold a part of the schedule: a number, a word about times, a condition, or nothing but a verb."""
    said = [word.lower() for word in task.split()]
    if len(said) < 2 or any(character.isdigit() for character in task):
        return True
    for word in (each.strip(",.;:\"'") for each in said[1:]):
        is_known = word in WORDS or word in OTHER_WORDS or word in REFUSED or word in _SCHEDULE_STARTS
        is_near = 3 < len(word) < 16 and bool(get_close_matches(word, WORDS, n=1, cutoff=0.8))
        if word in _CONDITIONS or word.endswith(("ly", "mente", "n't", "n\u2019t")):
            return True
        if (is_known or is_near) and word not in _HARMLESS:
            return True
    return False
