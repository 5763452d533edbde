"""Times, durations and statuses as people read them, and the message catalogues. Templates use these as filters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from markupsafe import Markup, escape

from foliot.services.runs.statistics import MOST_COUNTED

LANGUAGES = {"en": "English", "es": "Español"}
# A status is a shape, a word and a colour. The shape is the id of an icon in static/icons.svg.
STATUS_SHAPES = {
    "succeeded": "ok", "completed": "ok", "active": "ok", "alive": "ok",
    "delivered": "ok", "closed": "ok", "connected": "ok", "online": "ok",
    "failed": "fail", "timed_out": "fail", "interrupted": "fail", "dead": "fail", "open": "fail", "offline": "fail",
    "skipped": "skip", "expired": "skip", "archived": "skip",
    "cancelled": "stop", "disabled": "stop", "lost": "fail",
    "acknowledged": "run", "snoozed": "pause", "muted": "pause", "in_force": "pause", "planned": "wait", "over": "skip",
    "sending": "run", "failing": "fail", "stopped": "stop", "draining": "pause", "silent": "fail", "running": "run", "ready": "wait", "waiting": "wait", "pending": "wait", "paused": "pause",
}  # fmt: skip
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
Translate = Callable[..., str]
SECONDS_COUNT = timedelta(
    minutes=2
)  # farther away, a relative time without seconds is calmer; console.js has it too
# A time as sentences of the service quote it: 2027-01-05 06:00:00 America/Bogota (UTC-05:00).
_QUOTED_TIME = re.compile(
    r"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<zone>[A-Z][\w+-]*(?:/[\w+-]+)*)(?: \(UTC(?P<offset>[+-]\d\d:\d\d)\))?"
)


@cache
def catalogue(language: str) -> dict[str, str]:
    """English is the text in the templates. Every other language is a folder of JSON files by subject, English to translation."""
    messages: dict[str, str] = {}
    if language != "en":
        for file in (files("foliot.web.console") / "messages" / language).iterdir():
            messages |= json.loads(file.read_text("utf-8"))
    return messages


@cache
def messages_for_one(language: str) -> dict[str, str]:
    """Messages with a count, as they are said of one: English for many to the language's text for one."""
    file = files("foliot.web.console") / "messages" / "one" / f"{language}.json"
    messages: dict[str, str] = json.loads(file.read_text("utf-8"))
    return messages


def translator(language: str) -> Translate:
    messages, of_one = catalogue(language), messages_for_one(language)

    def translate(text: str, /, **values: object) -> str:
        found = of_one.get(text) if str(values.get("count")) == "1" else None
        found = found or messages.get(text, text)
        return found.format(**values) if values else found

    return translate


def choose_language(accepted: str, chosen: str | None) -> str:
    if chosen in LANGUAGES:
        return chosen
    for part in accepted.split(","):
        code = part.split(";")[0].strip().lower()[:2]
        if code in LANGUAGES:
            return code
    return "en"


@dataclass(frozen=True, slots=True)
class Reader:
    """The person who reads the page: their language, the zone they chose, and the instant of the request."""

    now: datetime
    translate: Translate
    zone: str | None = None  # None: each job's own

    def time(self, value: str | None, job_zone: str | None = None) -> Markup:
        """Relative in the text, absolute with its zone in the tooltip."""
        if not value:
            return Markup("—")
        at = parse(value)
        return html(
            '<time datetime="{}" title="{}" data-relative>{}</time>',
            value,
            self.absolute(at, job_zone),
            self.relative(at),
        )

    def full_time(self, value: str | None, job_zone: str | None = None) -> Markup:
        """Absolute with its zone in the text, UTC in the tooltip."""
        if not value:
            return Markup("—")
        at = parse(value)
        utc = f"{at:%Y-%m-%d %H:%M:%S}Z"
        return html('<time datetime="{}" title="{}">{}</time>', value, utc, self.absolute(at, job_zone))

    def with_times(self, sentence: str, job_zone: str | None = None) -> Markup:
        """A sentence of the service, whose times are those of the page: short, and in the zone that the reader chose."""
        parts, last = Markup(), 0
        for found in _QUOTED_TIME.finditer(sentence):
            parts += escape(sentence[last : found.start()]) + self._quoted_time(found, job_zone)
            last = found.end()
        return parts + escape(sentence[last:])

    def _quoted_time(self, found: re.Match[str], job_zone: str | None) -> Markup:
        if not is_zone(found["zone"]) or not (found["offset"] or found["zone"] == "UTC"):
            return escape(found[0])
        at = datetime.fromisoformat(found["wall"] + (found["offset"] or "+00:00"))
        text = self.absolute(at, job_zone or found["zone"])
        return html(
            '<time datetime="{}" title="{}">{}</time>', at.astimezone(UTC).isoformat(), found[0], text
        )

    def absolute(self, at: datetime, job_zone: str | None = None) -> str:
        local = at.astimezone(zone_named(self.zone or job_zone or "UTC"))
        t = self.translate
        day, month = t(DAYS[local.weekday()]), t(MONTHS[local.month - 1])
        seconds = f":{local.second:02}" if local.second else ""
        year = "" if local.year == self.now.year else f" {local.year}"
        return f"{day} {local.day} {month}{year} {local.hour:02}:{local.minute:02}{seconds} {local.tzname()}"

    def relative(self, at: datetime) -> str:
        t = self.translate
        distance = at - self.now
        whole = abs(distance)
        text = short_duration(
            whole if whole < SECONDS_COUNT else timedelta(minutes=whole // timedelta(minutes=1))
        )
        if abs(distance) < timedelta(seconds=1):
            return t("now")
        return t("in {time}", time=text) if distance > timedelta(0) else t("{time} ago", time=text)


def html(template: str, *values: object) -> Markup:
    """Fill a template of ours; every text that is not markup is escaped. As Markup.format, which runs in Python and is slow."""
    filled = template.format(*(each if isinstance(each, int | float) else escape(each) for each in values))
    return Markup(filled)  # noqa: S704  # the template is ours, the values are escaped


_OWN_ADDRESS = re.compile(
    r"https?://[^\s/]+(/console/(?:jobs|runs|incidents)/[0-9a-f]{8}-[0-9a-f-]{27})(?![\w/?#.-])"
)


def own_links(text: str) -> Markup:
    """A text in which an address of a job, a run or an incident is a link inside this console, whatever host it names."""
    parts, last = Markup(), 0
    for found in _OWN_ADDRESS.finditer(text):
        parts += escape(text[last : found.start()]) + html('<a href="{0}">{0}</a>', found[1])
        last = found.end()
    return parts + escape(text[last:])


def parse(value: str) -> datetime:
    return datetime.fromisoformat(value).astimezone(UTC)


def short_duration(value: timedelta) -> str:
    """The two largest units: 3 d 4 h, 12 m 30 s, 45 s."""
    seconds = int(value.total_seconds())
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, seconds = divmod(rest, 60)
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")) if n]
    return " ".join(parts[:2]) or "0 s"


def milliseconds(value: float | None) -> str:
    if value is None:
        return "—"
    if value < 1_000:
        return f"{value:.0f} ms"
    if value < 60_000:
        return f"{value / 1_000:.1f} s"
    return short_duration(timedelta(milliseconds=value))


def bounded(count: int) -> str:
    """A number that is counted up to a bound: 10,000+."""
    return f"{MOST_COUNTED - 1:,}+" if count >= MOST_COUNTED else number(count)


def number(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def sentence_case(value: str) -> str:
    """A word of the catalogue at the start of a line: one entry serves there and in the middle of a sentence."""
    return value[:1].upper() + value[1:]


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False)


def browser_pattern(value: str) -> str:
    """A pattern attribute that only this text matches. Browsers refuse a backslash before other characters than these."""
    return re.sub(r"[\^$\\.*+?()\[\]{}|/]", r"\\\g<0>", value)


def filter_value(value: str) -> str:
    """The value as a term of the filter language takes it: in quotes where it has spaces or signs."""
    if any(each.isspace() or each in '",:' for each in value):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return value


_COLOURS = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")


def without_colours(value: str) -> str:
    """A line of a log without the codes that terminals read as colours."""
    return _COLOURS.sub("", value)


def zone_named(name: str) -> ZoneInfo:
    """The zone, or UTC where no zone has this name."""
    return _zone(name) or ZoneInfo("UTC")


def is_zone(name: str) -> bool:
    return _zone(name) is not None


@lru_cache(maxsize=1_000)  # names come from cookies
def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def shape_of(status: str | None) -> str:
    return STATUS_SHAPES.get(status or "", "wait")


def status_mark(status: str | None, word: str) -> Markup:
    shape = shape_of(status)
    return html(
        '<span class="status s-{0}"><svg class="icon" aria-hidden="true"><use href="/console/static/icons.svg#{0}"/></svg><span>{1}</span></span>',
        shape,
        escape(word),
    )
