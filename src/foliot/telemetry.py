"""Logging. Each event is logged once, with fields, under a name of noun.past_verb:

log.info("server.started", extra={"url": url})

Our own lines and those of libraries go to one stream, as JSON or for people, without secrets.

Why: docs/decisions/802-command-line-output.md
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

HIDDEN = "********"
QUIET_LIBRARIES = (
    "asyncio", "httpcore2", "httpx2", "psycopg", "psycopg.pool", "uvicorn", "uvicorn.access", "uvicorn.error",
)  # fmt: skip


def configure(
    *, style: str, level: str, stream: TextIO, environ: Mapping[str, str], secrets: Iterable[str] = ()
) -> None:
    """Send every log line of this process to `stream`. `style` is auto, human or json."""
    on_terminal = stream.isatty()
    human = style == "human" or (style == "auto" and on_terminal)
    coloured = human and on_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    secret_filter = SecretFilter(secrets)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(HumanLines(secret_filter, coloured=coloured) if human else JsonLines(secret_filter))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in QUIET_LIBRARIES:
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True
        library.setLevel(max(root.level, logging.WARNING) if root.level > logging.DEBUG else logging.DEBUG)


_live: Counter[str] = Counter()


@contextmanager
def hide_secrets(texts: Iterable[str]) -> Iterator[None]:
    """Hide these texts as long as the block lasts: secrets of a run under way."""
    hidden = tuple(texts)
    _live.update(hidden)
    try:
        yield
    finally:
        _live.subtract(hidden)
        for each in hidden:
            if _live[each] <= 0:
                del _live[each]


class SecretFilter:
    """Remove secrets from everything that is printed."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # A short secret would mask ordinary words. Longest first, so that masking a part does not hide the whole.
        self._secrets = sorted({secret for secret in secrets if len(secret) >= 8}, key=len, reverse=True)

    def value(self, name: str, value: object) -> object:
        if _SECRET_NAME.search(name):
            return HIDDEN
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            return {str(key): self.value(str(key), inner) for key, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.value("", inner) for inner in value]
        return self.text(str(value))

    def text(self, text: str) -> str:
        # Sorting copies them atomically: another thread may start or end a run meanwhile.
        live = sorted(_live, key=len, reverse=True) if _live else ()
        for secret in (*self._secrets, *live):
            text = text.replace(secret, HIDDEN)
        return _PASSWORD_IN_WORDS.sub(rf"\1{HIDDEN}", _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", text))


class JsonLines(logging.Formatter):
    """One object per line: ts, level, event, then the fields. ASCII, so nothing in a value can end the line."""

    def __init__(self, secrets: SecretFilter) -> None:
        super().__init__()
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record, self._secrets)
        line = {"ts": _instant(record).isoformat(timespec="milliseconds").replace("+00:00", "Z")}
        line |= {"level": record.levelname.lower(), "event": event}
        if record.exc_info:
            fields["trace"] = self._secrets.text(self.formatException(record.exc_info))
        return json.dumps(
            line | fields | line, default=str
        )  # a field cannot replace the time, level or event


class HumanLines(logging.Formatter):
    """Time, level, event, then name=value; a traceback follows on lines of its own."""

    def __init__(self, secrets: SecretFilter, *, coloured: bool) -> None:
        super().__init__()
        self._secrets = secrets
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        event, fields = _event_of(record, self._secrets)
        time = _instant(record).strftime("%H:%M:%SZ")
        level = record.levelname.lower()
        shown = "  ".join(f"{self._paint('2', name + '=')}{_format(value)}" for name, value in fields.items())
        line = f"{self._paint('2', time)}  {self._paint(_COLOURS.get(level, '0'), f'{level:<7}')}  {event:<22}  {shown}"
        if record.exc_info:
            trace = self._secrets.text(self.formatException(record.exc_info))
            line += "\n" + "\n".join("    " + _printable(part) for part in trace.splitlines())
        return line.rstrip()

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._coloured else text


_COLOURS = {"debug": "2", "info": "32", "warning": "33", "error": "31", "critical": "1;31"}
_SECRET_NAME = re.compile(
    r"^key$|(^|_)((api|admin|master)_key|secret|password|token|authorization|cookie)$", re.IGNORECASE
)
_PASSWORD_IN_URL = re.compile(r"(\w://[^\s:/@]*:)[^\s/@]+@")
# In the query of an address, and in a connection string: host=… password='…'
_PASSWORD_IN_WORDS = re.compile(r"(\b(?:ssl)?password\s*=\s*)('(?:\\.|[^'\\])*'|[^\s&'\"]+)")
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def _event_of(record: logging.LogRecord, secrets: SecretFilter) -> tuple[str, dict[str, object]]:
    """Return the event's name and its fields. A library logs sentences: its name is the event, the sentence a field."""
    fields: dict[str, Any] = {key: value for key, value in vars(record).items() if key not in _OWN}
    event = record.getMessage()
    if not record.name.startswith("foliot"):
        fields = {"message": event, **fields}
        event = record.name
    return secrets.text(event), {name: secrets.value(name, value) for name, value in fields.items()}


def _instant(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _format(value: object) -> str:
    text = _printable(value if isinstance(value, str) else json.dumps(value, default=str))
    return f'"{text}"' if isinstance(value, str) and (not text or " " in text) else text


def _printable(text: str) -> str:
    """Escape control characters, line ends and terminal escapes, so that a line stays one line."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
