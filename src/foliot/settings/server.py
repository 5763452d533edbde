"""What a node is: where it lives, listens and keeps its data, and which parts of Foliot it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from foliot.settings.kinds import Folder, Networks, OneOf, PostgresUrl, SomeOf, Text, Url, WholeNumber
from foliot.settings.rows import as_row

ADDRESS_FILE = "address"  # in the data directory: where its server listens, while it does
ROLES = ("api", "scheduler", "worker")
POSTGRES = PostgresUrl()


@dataclass(frozen=True, kw_only=True)
class Serving:
    config: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(), "File to read settings from. Default: foliot.toml in the current folder.", in_toml=False
        ),
    )
    data_dir: Path = field(
        default=Path(".foliot"),
        metadata=as_row(
            Folder(),
            "Folder of the private PostgreSQL and of admin.key; made for this user alone. "
            "The default is relative to the current folder.",
        ),
    )
    host: str = field(default="127.0.0.1", metadata=as_row(Text(), "Address that HTTP listens on."))
    port: int = field(
        default=8700,
        metadata=as_row(
            WholeNumber(0, 65535), "Port that HTTP listens on; 0 takes a free one and prints it."
        ),
    )
    database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL 15 or newer to work on. Without it Foliot runs its own under data_dir.",
            secret=True,
        ),
    )
    migrate_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database as its owner, for migrations; not needed while there are none to apply. Default: "
            "database_url, which weakens the separation of workspaces where it owns the tables.",
            secret=True,
        ),
    )
    listen_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "The same database with no pooler between, for LISTEN: hints that make runs start at once. "
            "Default: database_url.",
            secret=True,
        ),
    )
    test_database_url: str | None = field(
        default=None,
        metadata=as_row(
            POSTGRES,
            "PostgreSQL that the test suite runs on instead of its own. Only ./dev test reads it.",
            secret=True,
        ),
    )
    api_url: str = field(
        default="http://127.0.0.1:8700",
        metadata=as_row(
            Url(("http", "https")),
            "Foliot server that clients on this machine speak to.",
        ),
    )
    api_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that clients send. Default: the one in data_dir/admin.key.",
            secret=True,
        ),
    )
    ca_file: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(),
            "File of certificates, as PEM, that clients and hosts trust in the place of the machine's own. "
            "Default: those of SSL_CERT_FILE, else the machine's.",
        ),
    )
    master_key: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "Key that seals stored secrets: 32 random bytes in base64 or hex. Behind it, divided by commas, older ones that still open "
            "what they have sealed. Default: those in data_dir/master.key, which is made when it is first needed.",
            secret=True,
        ),
    )
    egress_allow: tuple[str, ...] = field(
        default=(),
        metadata=as_row(
            Networks(),
            "Networks beyond the public internet that http jobs and webhooks may reach; none closes them all. "
            "Default: loopback where `foliot serve` listens on loopback and runs its own PostgreSQL, else none.",
        ),
    )
    pg_bindir: Path | None = field(
        default=None,
        metadata=as_row(
            Folder(),
            "Folder of the PostgreSQL programs. Default: those of foliot[local], else those installed.",
        ),
    )
    log_format: str = field(
        default="auto",
        metadata=as_row(
            OneOf(("auto", "human", "json")),
            "How log lines look; auto is human on a terminal, json elsewhere.",
        ),
    )
    log_level: str = field(
        default="info",
        metadata=as_row(
            OneOf(("debug", "info", "warning", "error")), "The least important log lines to keep."
        ),
    )
    shutdown_grace: int = field(
        default=3,
        metadata=as_row(
            WholeNumber(0, 10),
            "How long requests under way may go on after SIGTERM or SIGINT.",
            unit="seconds",
        ),
    )
    roles: tuple[str, ...] = field(
        default=ROLES,
        metadata=as_row(
            SomeOf(ROLES),
            "What this `foliot serve` does, divided by commas: answer the API, fire what is due and sweep, execute runs. "
            "A split needs database_url, which the nodes share.",
        ),
    )
    app: str | None = field(
        default=None,
        metadata=as_row(
            Text(),
            "App whose decorated functions the worker runs, as module:app; its jobs are made what its code says at each start.",
        ),
    )
