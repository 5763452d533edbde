"""A default that changes while a job is written: no job keeps the old value."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg

from foliot.domain.access import Scope
from foliot.domain.defaults import INHERITABLE, DefaultValues
from foliot.domain.definition import Definition
from foliot.services.jobs import defaults, jobs
from foliot.services.jobs.defaults import DefaultChanges
from foliot.services.jobs.jobs import JobDraft
from foliot.storage.tx import Database
from foliot.testing.fixtures import ANA
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver, definition

MINUTE = timedelta(minutes=1)


async def create(database: Database, driver: ServiceDriver) -> None:
    async def define(draft: JobDraft) -> Definition:
        blank = Definition("late", definition().spec, inherited=dict.fromkeys(INHERITABLE, ""))
        return (await draft.load_defaults()).applied_to(blank)

    await jobs.create(database, Scope(driver.workspace, ANA), define)


def timeouts(owner: psycopg.Connection[Any]) -> list[Any]:
    return owner.execute("SELECT definition -> 'spec' -> 'limits' -> 'timeout' FROM foliot.jobs").fetchall()


async def test_a_job_that_is_written_while_the_default_changes_gets_the_new_one(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    async with nodes.paused_at_table(create(nodes.left, driver), at="audit") as first:
        changes = DefaultChanges({"timeout": MINUTE})
        second = await nodes.start_blocked(
            defaults.change(nodes.right, Scope(driver.workspace, ANA), changes)
        )
    await first
    await second
    assert timeouts(owner) == [(60,)]


async def test_a_job_that_is_written_while_the_installation_changes_its_default_is_found_later(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    async with nodes.paused_at_table(create(nodes.left, driver), at="audit") as first:
        second = await nodes.start_blocked(
            defaults.set_of_installation(nodes.right, DefaultValues(timeout=MINUTE))
        )
    await first
    await second
    while await defaults.apply_unapplied(nodes.left):
        pass
    assert timeouts(owner) == [(60,)]
