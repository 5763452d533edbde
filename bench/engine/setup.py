"""A PostgreSQL that keeps its promises (fsync and synchronous_commit on), and databases on it with many jobs in them.

A population is made once as a template; every measurement gets a fresh copy of it, so that none inherits another's dead rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from bench.engine import population
from bench.engine.population import Population
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import EmbeddedServer, start
from foliot.storage.migrate import migrate
from foliot.storage.roles import Login

SETTINGS = {"max_wal_size": "8GB", "fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
SHARED_BUFFERS = "1GB"
LOGIN = Login("foliot_bench_pool", "only for the benchmark")


@dataclass(slots=True)
class Bench:
    """A running server and the templates made on it so far."""

    server: EmbeddedServer
    templates: dict[Population, str] = field(default_factory=dict)
    copies: int = 0

    @property
    def server_pid(self) -> int:
        return self.server.pid

    @property
    def settings(self) -> str:
        return ", ".join(
            f"{name} {value}" for name, value in {"shared_buffers": SHARED_BUFFERS, **SETTINGS}.items()
        )

    @contextmanager
    def database(self, wanted: Population) -> Iterator[Site]:
        """A copy of the population, in memory as far as it fits, gone at the end."""
        template = self.templates.get(wanted) or self._make(wanted)
        self.copies += 1
        name = f"bench_{self.copies}"
        self._run(
            SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY").format(
                Identifier(name), Identifier(template)
            )
        )
        site = self._site(name)
        try:
            with psycopg.connect(site.owner_url, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION pg_prewarm")
                connection.execute(
                    "SELECT pg_prewarm(oid) FROM pg_class WHERE relnamespace = 'foliot'::regnamespace AND relkind IN ('r', 'i')"
                    " AND relname ~ '^(timers|ready|leases|runs)'"
                )
            yield site
        finally:
            self._run(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))

    def forget(self, wanted: Population) -> None:
        """Free the disk of a template that is no longer needed."""
        if (template := self.templates.pop(wanted, None)) is not None:
            self._run(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(template)))

    def _make(self, wanted: Population) -> str:
        name = f"population_{len(self.templates)}_{wanted.jobs}"
        self._run(SQL("CREATE DATABASE {} TEMPLATE template0").format(Identifier(name)))
        site = self._site(name)
        migrate(site.owner_url, login=LOGIN)
        population.fill(site.owner_url, site.url, wanted)
        self.templates[wanted] = name
        return name

    def _site(self, name: str) -> Site:
        login = make_conninfo(self.server.owner_url, dbname=name, user=LOGIN.name, password=LOGIN.password)
        return Site(make_conninfo(self.server.owner_url, dbname=name), login, self.server.pid)

    def _run(self, statement: psycopg.sql.Composed) -> None:
        with psycopg.connect(self.server.owner_url, autocommit=True) as connection:
            connection.execute(statement)


@dataclass(frozen=True, slots=True)
class Site:
    """Where one measurement happens."""

    owner_url: str
    url: str  # as the service's own login
    server_pid: int


@contextmanager
def bench(settings: dict[str, str] | None = None) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory(prefix="foliot-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        config = EmbeddedConfig(
            Path(folder).resolve() / "data",
            shared_buffers=SHARED_BUFFERS,
            settings=SETTINGS | (settings or {}),
        )
        with start(config) as server:
            yield Bench(server)
