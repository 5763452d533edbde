"""`foliot worker`: a worker of its own, on a database that others serve too."""

from __future__ import annotations

import asyncio
import os
import sys

from foliot.domain.errors import DatabaseUnavailable, Invalid
from foliot.settings import Settings
from foliot.storage.migrate import is_current
from foliot.wiring.database import configure_logs
from foliot.wiring.garbage_collector import collect_seldom
from foliot.wiring.worker_main import orders_of, run
from foliot.wiring.worker_process import without_secrets


def work(settings: Settings) -> None:
    """Run until a signal ends it."""
    configure_logs(settings)
    url = settings.database_url
    if url is None:
        raise Invalid(
            "A worker of its own needs the address of a database.",
            hint="Set FOLIOT_DATABASE_URL. The private PostgreSQL belongs to `foliot serve`, which has a worker: "
            "`foliot serve --app module:app`.",
        )
    if not is_current(url):
        raise DatabaseUnavailable(
            "The tables of this database are not those of this version.",
            hint="Start `foliot serve` on it first, or `foliot migrate`.",
        )
    orders = orders_of(settings, url)
    if orders is None:
        raise Invalid("A worker with no room for a run does nothing.", hint="Give --concurrency 1 or more.")
    kept = without_secrets(os.environ)
    for name in set(os.environ) - set(kept):
        del os.environ[name]  # jobs' own code need not see them, here or in its processes
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that a file lying there cannot pose as a library
    collect_seldom()
    asyncio.run(run(orders, is_child=False))
