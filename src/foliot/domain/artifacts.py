"""Artifacts: named files that a run stores, limited in size and number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.errors import Invalid, QuotaExceeded

MOST_BYTES = 20 * 1024 * 1024  # bytes of one artifact, unless a setting changes it
MOST_OF_A_RUN = 100
# No folders or control characters: a shell or browser must see only a name.
_NAME = re.compile(r"(?!\.{1,2}$)[^/\\\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_MEDIA_TYPE = re.compile(
    r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}(; ?charset=[A-Za-z0-9_-]{1,40})?"
)
_TEXTS = frozenset(
    f"application/{kind}"
    for kind in (
        "json",
        "jsonl",
        "ndjson",
        "x-ndjson",
        "xml",
        "yaml",
        "x-yaml",
        "toml",
        "csv",
        "sql",
        "javascript",
    )
)


@dataclass(frozen=True, slots=True)
class Artifact:
    name: str
    media_type: str
    size: int
    sha256: bytes
    attempt: int
    created_at: datetime


def charset_of(media_type: str) -> str | None:
    """Return the charset of a text artifact, or None if it is not text."""
    kind, _, charset = media_type.partition(";")
    is_text = kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml", "+yaml"))
    return (charset.partition("=")[2] or "utf-8") if is_text else None


def check_artifact(name: str, media_type: str, size: int, most_bytes: int = MOST_BYTES) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            f"An artifact cannot be called {name[:64]!r}.",
            hint="A file's name without folders, such as report.pdf.",
        )
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise Invalid(
            f"{media_type[:64]!r} is not a media type.", hint="Such as text/csv or application/pdf."
        )
    if size > most_bytes:
        raise Invalid(
            f"The artifact {name} has {size:,} bytes; the most is {most_bytes:,}.",
            hint="Keep large data elsewhere, and its address here.",
        )


def check_count(others: int) -> None:
    if others >= MOST_OF_A_RUN:
        raise Invalid(
            f"A run keeps {MOST_OF_A_RUN} artifacts at most, and this run has that many.",
            hint="Put several files into one archive.",
        )


def check_artifact_storage(used: int, size: int, most: int | None) -> None:
    """Check the storage quota. `used` excludes this artifact."""
    if most is not None and used + size > most:
        raise QuotaExceeded(
            f"The artifacts of this workspace have {used:,} bytes, and may have {most:,}.",
            quota="artifact_bytes",
            limit=most,
            used=used,
            hint="Runs take theirs along when they are pruned; keep fewer runs, or ask the operator for more.",
        )
