"""The configuration of the embedded server, and the two names that are the same in every one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

OWNER = "foliot_owner"  # superuser of the embedded server; migrations run as it
DATABASE = "foliot"


@dataclass(frozen=True, slots=True)
class EmbeddedConfig:
    data_dir: Path
    bindir: Path | None = None  # PostgreSQL programs; found by itself when not given
    user: str | None = None  # whom PostgreSQL runs as when Foliot runs as root
    port: int | None = None  # preferred port, such as that of a server being replaced; a free one otherwise
    state_home: Path | None = None  # where private folders go when the data directory cannot hold the server
    shared_buffers: str = "128MB"
    max_connections: int = 100
    start_timeout: float = 120.0  # seconds; replaying the log after a crash is part of it
    settings: Mapping[str, str] = field(
        default_factory=dict
    )  # further server settings, by PostgreSQL's names
