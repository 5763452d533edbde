"""Places for requests: who waits, who is next, who is refused. No database: a request is a call of the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from foliot.web.admission import Overloaded, RequestGate, Share

pytestmark = pytest.mark.anyio
LONG = 30.0  # seconds: no test waits for it
ACME, GLOBEX = Share("acme", "key of acme"), Share("globex", "key of globex")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Arrivals:
    """Requests that stand before the gate, in the order in which they were let in."""

    def __init__(self, gate: RequestGate) -> None:
        self.gate = gate
        self.entered: list[str] = []

    async def come(self, name: str, share: Share) -> None:
        await self.gate.enter(share)
        self.entered.append(name)

    async def all_come(self, share: Share, names: Iterable[str]) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.come(name, share)) for name in names]
        await asyncio.sleep(0)
        return tasks


async def test_a_workspace_gets_three_quarters_of_the_places_and_a_key_half() -> None:
    arrivals = Arrivals(RequestGate(8, wait=LONG))
    first = await arrivals.all_come(Share("acme", "one"), "abcdefgh")
    assert arrivals.entered == ["a", "b", "c", "d"]
    second = await arrivals.all_come(Share("acme", "two"), "ijkl")
    assert arrivals.entered == ["a", "b", "c", "d", "i", "j"]
    await arrivals.all_come(GLOBEX, "xy")
    assert arrivals.entered[-2:] == ["x", "y"]
    for task in (*first, *second):
        task.cancel()


async def test_a_flood_of_one_workspace_lets_another_in_with_the_next_place() -> None:
    gate = RequestGate(2, wait=LONG)
    arrivals = Arrivals(gate)
    keys = [Share("acme", f"key {number}") for number in range(3)]
    waiting = [
        task for key in keys for task in await arrivals.all_come(key, [f"{key.key} {n}" for n in range(20)])
    ]
    waiting += await arrivals.all_come(GLOBEX, ["x"])
    assert arrivals.entered == ["key 0 0", "x"]
    leaving = keys[0]
    for key in (keys[0], keys[1], keys[2], keys[0]):  # the keys of a workspace take turns as well
        gate.leave(leaving)
        await asyncio.sleep(0)
        assert arrivals.entered[-1].startswith(str(key.key))
        leaving = key
    for task in waiting:
        task.cancel()


async def test_who_waits_too_long_is_refused_and_leaves_the_line() -> None:
    gate = RequestGate(1, wait=0.01)
    await gate.enter(ACME)
    with pytest.raises(Overloaded):
        await gate.enter(ACME)
    gate.leave(ACME)
    await gate.enter(GLOBEX)  # the place was not given to the one that had left


async def test_the_last_of_the_longest_line_gives_way_to_a_short_one() -> None:
    gate = RequestGate(1, waiting=3, wait=LONG)
    arrivals = Arrivals(gate)
    await gate.enter(Share("first", "first"))
    flood = await arrivals.all_come(ACME, "abc")
    other = await arrivals.all_come(GLOBEX, "x")
    await asyncio.wait(flood, return_when=asyncio.FIRST_COMPLETED)
    assert isinstance(flood[-1].exception(), Overloaded)
    with pytest.raises(Overloaded):
        await gate.enter(ACME)
    gate.leave(Share("first", "first"))
    await asyncio.wait([flood[0]])
    gate.leave(ACME)
    await asyncio.wait(other)
    assert arrivals.entered == ["a", "x"]
    flood[1].cancel()


async def test_a_request_that_is_cancelled_in_the_moment_of_its_turn_gives_the_place_on() -> None:
    gate = RequestGate(1, wait=LONG)
    await gate.enter(ACME)
    waiting = asyncio.create_task(gate.enter(ACME))
    await asyncio.sleep(0)
    gate.leave(ACME)  # its turn is set, and it has not run yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(LONG):
        await gate.enter(GLOBEX)


async def test_a_place_is_not_lost_to_a_request_whose_time_is_up_in_that_moment() -> None:
    gate = RequestGate(1, wait=LONG)
    await gate.enter(ACME)
    late = asyncio.create_task(gate.enter(ACME))
    await asyncio.sleep(0)
    late.cancel()  # it has not run since, so it is in the line still
    gate.leave(ACME)
    async with asyncio.timeout(LONG):
        await gate.enter(GLOBEX)
    with pytest.raises(asyncio.CancelledError):
        await late
