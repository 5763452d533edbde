"""Fires and settlements in workspaces with channels and notification rules, beside a process that notifies and watches, and without all that."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import psycopg

from bench.engine import fires, runs
from bench.engine.clock import ShiftedClock
from bench.engine.population import DUE, Population
from bench.engine.processes import together
from bench.engine.setup import Bench, Site
from foliot.services.notifications.dispatch import NotifierPolicy, dispatch
from foliot.services.notifications.event_feed import feed
from foliot.services.notifications.watch import watch, watch_runs
from foliot.storage.tx import Database

RULES = 20  # of each workspace
_RULES = """
INSERT INTO foliot.channels (workspace_id, id, name, kind, config, receiver, created_at, updated_at)
SELECT id, gen_random_uuid(), 'ops', 'webhook', '{"url": "https://example.test/"}', 'example.test:443', now(), now() FROM foliot.workspaces;
INSERT INTO foliot.notification_rules (workspace_id, id, name, definition, created_at, updated_at)
SELECT channels.workspace_id, gen_random_uuid(), 'rule ' || number,
       jsonb_build_object('events', '["run_failed", "recovered", "missed", "late", "slow", "stuck"]'::jsonb, 'channels', jsonb_build_array(channels.id),
                          'scope', jsonb_build_object('tags', jsonb_build_array('tag ' || number))),
       now(), now()
  FROM foliot.channels, generate_series(1, %s) AS number;
"""


class Rates(NamedTuple):
    fires: float
    settled: float


def measure(bench: Bench, jobs: int, rounds: int) -> tuple[Rates, Rates]:
    """Return the medians without and with notifications, measured in turn and each first every other time. The first pair only warms up."""
    found: dict[bool, list[Rates]] = {False: [], True: []}
    for turn in range(rounds + 1):
        for is_notified in (False, True) if turn % 2 else (True, False):
            with bench.database(Population(jobs, jobs)) as site, _notifying(site, is_notified):
                fired = fires.on(site, 2)
                settled = together(site.server_pid, [(runs.working, (site.url, fired.count))])
                if turn:
                    found[is_notified].append(Rates(fired.per_second, settled.per_second))
    plain, notified = (
        Rates(median(each.fires for each in rates), median(each.settled for each in rates))
        for rates in (found[False], found[True])
    )
    return plain, notified


@contextmanager
def _notifying(site: Site, is_notified: bool) -> Iterator[None]:
    if not is_notified:
        yield
        return
    with psycopg.connect(site.owner_url, autocommit=True, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute(_RULES, [RULES])
    process = multiprocessing.get_context("spawn").Process(target=_notify, args=(site.url,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _notify(url: str) -> None:
    asyncio.run(_notify_until_stopped(url))


async def _notify_until_stopped(url: str) -> None:
    async with Database(url, clock=ShiftedClock(DUE, time.monotonic())) as database:
        while True:
            await watch(database)
            await watch_runs(database)
            for _ in range(7):  # as the loops of a node: every two seconds, and every fifteen
                await feed(database)
                await dispatch(database, NotifierPolicy())
                await asyncio.sleep(2)
