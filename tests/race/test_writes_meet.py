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
from tests.race.hands import Hands
from tests.services.shop import Shop

pytestmark = pytest.mark.anyio


def order() -> IdempotentRequest:
    return IdempotentRequest(PrincipalId(uuid4()), "order-7", b"the same request")


async def test_one_key_twice_at_once_is_claimed_once(shop: Shop, hands: Hands) -> None:
    asked = order()
    async with hands.midway(begin(hands.left, shop.workspace, asked), at="idempotency_keys") as first:
        second = await hands.behind(begin(hands.right, shop.workspace, asked))
    outcomes = await asyncio.gather(first, second, return_exceptions=True)
    assert sorted(type(each).__name__ for each in outcomes) == ["KeyInUse", "UUID"]


async def test_a_repeat_during_the_commit_finds_that_it_is_done(shop: Shop, hands: Hands) -> None:
    job_id, asked = await shop.job(Manual()), order()
    claim = await begin(hands.left, shop.workspace, asked)
    assert isinstance(claim, UUID)
    async with hands.left.tx(
        Role.APP, shop.workspace
    ) as first:  # all of it is done, and nobody can see it yet
        run_id = await request_run(first, job_id, Scope(shop.workspace, Actor("ana", claim=claim)))
        repeat = await hands.behind(begin(hands.right, shop.workspace, asked))
        freeing = await hands.behind(release(hands.right, shop.workspace, claim))
    await freeing
    with pytest.raises(KeyInUse):
        await repeat
    shop.clock.advance(WRITING)
    held = await begin(hands.right, shop.workspace, asked)
    assert isinstance(held, IdempotencyRecord)
    assert held.thing == ("run", str(run_id))
    assert shop.sql("SELECT count(*) FROM foliot.runs") == [(1,)]


async def test_what_lost_its_key_on_the_way_is_not_done(shop: Shop, hands: Hands) -> None:
    """Somebody gave it up for dead and freed its key; were it to go on, a repeat would do the same again."""
    job_id, asked = await shop.job(Manual()), order()
    claim = await begin(hands.left, shop.workspace, asked)
    assert isinstance(claim, UUID)
    run = run_now(hands.left, Scope(shop.workspace, Actor("ana", claim=claim)), job_id)
    async with hands.midway(run, at="audit") as first:
        await release(hands.right, shop.workspace, claim)
        again = await begin(hands.right, shop.workspace, asked)
        assert isinstance(again, UUID)
    with pytest.raises(Conflict, match="has taken over"):
        await first
    assert shop.sql("SELECT count(*) FROM foliot.runs") == [(0,)]
