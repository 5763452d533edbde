"""The same request twice at once, under one Idempotency-Key."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, KeyInUse
from foliot.domain.ids import PrincipalId
from foliot.domain.schedule import Manual
from foliot.services.identity.idempotency import WRITING, IdempotencyRecord, IdempotentRequest, begin, release
from foliot.services.runs.run_control import run_now
from foliot.services.runs.run_steps import request_run
from foliot.storage.tx import Role
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver

pytestmark = pytest.mark.anyio


def order() -> IdempotentRequest:
    return IdempotentRequest(PrincipalId(uuid4()), "order-7", b"the same request")


async def test_one_key_twice_at_once_is_claimed_once(driver: ServiceDriver, nodes: RaceNodes) -> None:
    asked = order()
    async with nodes.paused_at_table(
        begin(nodes.left, driver.workspace, asked), at="idempotency_keys"
    ) as first:
        second = await nodes.start_blocked(begin(nodes.right, driver.workspace, asked))
    outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == ["KeyInUse", "UUID"]


async def test_a_repeat_during_the_commit_finds_that_it_is_done(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    job_id, asked = await driver.job(Manual()), order()
    claim = await begin(nodes.left, driver.workspace, asked)
    assert isinstance(claim, UUID)
    async with nodes.left.tx(
        Role.APP, driver.workspace
    ) as first:  # all of it is done, and nobody can see it yet
        run_id = await request_run(first, job_id, Scope(driver.workspace, Actor("ana", claim=claim)))
        repeat = await nodes.start_blocked(begin(nodes.right, driver.workspace, asked))
        freeing = await nodes.start_blocked(release(nodes.right, driver.workspace, claim))
    await freeing
    with pytest.raises(KeyInUse):
        await repeat
    driver.clock.advance(WRITING)
    held = await begin(nodes.right, driver.workspace, asked)
    assert isinstance(held, IdempotencyRecord)
    assert held.thing == ("run", str(run_id))
    assert driver.sql("SELECT count(*) FROM foliot.runs") == [(1,)]


async def test_what_lost_its_key_on_the_way_is_not_done(driver: ServiceDriver, nodes: RaceNodes) -> None:
    """A sweep gave it up for dead and freed its key; were it to go on, a repeat would do the same again."""
    job_id, asked = await driver.job(Manual()), order()
    claim = await begin(nodes.left, driver.workspace, asked)
    assert isinstance(claim, UUID)
    run = run_now(nodes.left, Scope(driver.workspace, Actor("ana", claim=claim)), job_id)
    async with nodes.paused_at_table(run, at="audit") as first:
        await release(nodes.right, driver.workspace, claim)
        again = await begin(nodes.right, driver.workspace, asked)
        assert isinstance(again, UUID)
    with pytest.raises(Conflict, match="has taken over"):
        await first
    assert driver.sql("SELECT count(*) FROM foliot.runs") == [(0,)]
