"""Fifty jobs a second, each due 20 ms after the one before: measure how late the handlers start."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import psycopg

from bench.engine.herd import AMONG, Lags, lags
from bench.engine.loops import Plan, scheduling, working
from bench.engine.population import DUE, TYPE, Population
from bench.engine.processes import together
from bench.engine.setup import Bench, Site
from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.schedule import Interval
from foliot.services.jobs import jobs
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock

PER_SECOND = 50
HOUR = timedelta(hours=1)


def measure(bench: Bench, seconds: int) -> Lags:
    with bench.database(Population(AMONG, 0)) as site:
        asyncio.run(_make(site, seconds * PER_SECOND))
        plan = Plan(DUE - timedelta(seconds=4), time.monotonic(), seconds + 20.0, seconds * PER_SECOND)
        done = together(site.server_pid, [(scheduling, (site.url, plan)), (working, (site.url, plan))]).done
    return lags([entered - planned_for for planned_for, entered in done[1].more])


async def _make(site: Site, count: int) -> None:
    with psycopg.connect(site.owner_url) as owner:
        workspaces = [row[0] for row in owner.execute("SELECT id FROM foliot.workspaces")]
    clock = ManualClock(DUE - HOUR)
    async with Database(site.url, clock=clock) as database:
        for place in range(count):
            definition = Definition(f"steady {place}", Spec(Interval(HOUR), TYPE))
            await jobs.create(
                database, Scope(workspaces[place % len(workspaces)], Actor("bench")), definition
            )
            clock.advance(timedelta(seconds=1) / PER_SECOND)
