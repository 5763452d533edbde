"""The last place in a workspace, the last administrator, and a workspace that is put away meanwhile: two reach for it at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from foliot.domain.access import Actor, KeyHolder, MemberRole, Principal, PrincipalKind, Scope
from foliot.domain.errors import Conflict, FoliotError, QuotaExceeded
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId
from foliot.domain.quotas import Quotas
from foliot.services.identity import member_removal, workspaces
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import job_status, jobs
from foliot.services.messaging import rooms
from foliot.services.messaging.rooms import NewRoom
from foliot.services.workers.remote_register import WorkerPrincipal
from foliot.storage.identity import members as stored_members
from foliot.storage.identity import workspaces as stored
from foliot.storage.tx import Database, Role
from tests.race.race_nodes import RaceNodes
from tests.services.remote_hosts import RemoteHost, register_host
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
ANA = Actor("ana", quotas=Quotas(jobs=3))


def create(database: Database, workspace: WorkspaceId) -> Any:
    return jobs.create(database, Scope(workspace, ANA), definition())


async def test_two_who_reach_for_the_last_place_do_not_both_get_it(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    for _ in range(2):
        await create(nodes.left, driver.workspace)
    async with nodes.paused_at_table(create(nodes.left, driver.workspace), at="audit") as first:
        second = await nodes.start_blocked(create(nodes.right, driver.workspace))
    await first
    with pytest.raises(QuotaExceeded) as refused:
        await second
    assert (refused.value.quota, refused.value.limit, refused.value.used) == ("jobs", 3, 3)


async def test_a_crowd_gets_as_many_places_as_there_are(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    sides = (nodes.left, nodes.right)
    asked = [create(sides[n % 2], driver.workspace) for n in range(16)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(each, QuotaExceeded) for each in answers) == 13
    assert owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (3,)


async def test_a_crowd_archives_as_many_jobs_as_there_are_places(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    scope = Scope(driver.workspace, Actor("ana", quotas=Quotas(archived_jobs=3)))
    made = [await jobs.create(nodes.left, scope, definition()) for _ in range(12)]
    sides = (nodes.left, nodes.right)
    asked = [job_status.archive(sides[n % 2], scope, each.id) for n, each in enumerate(made)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [each for each in answers if isinstance(each, QuotaExceeded)]
    assert len(refused) == 9
    assert {(each.quota, each.limit, each.used) for each in refused} == {("archived_jobs", 3, 3)}
    assert "foliot jobs delete --purge" in (refused[0].hint or "")
    archived = owner.execute("SELECT count(*) FROM foliot.jobs WHERE status = 'archived'").fetchone()
    assert archived == (3,)


async def test_a_crowd_of_hosts_gets_as_many_places_as_there_are(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    by = Actor("hosts", quotas=Quotas(hosts=3, servers=4))
    speaker = WorkerPrincipal(driver.workspace, PrincipalId(uuid4()), by)
    sides = (nodes.left, nodes.right)
    asked = [
        register_host(sides[n % 2], speaker, f"h{n}", *([f"s{n}"] if n % 2 else [f"a{n}", f"b{n}"]))
        for n in range(12)
    ]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(each) for each in answers} <= {QuotaExceeded, RemoteHost}
    counts = "SELECT (SELECT count(*) FROM foliot.hosts), (SELECT count(*) FROM foliot.server_instances)"
    found = owner.execute(counts).fetchone()
    assert found is not None
    assert found[0] == sum(isinstance(each, RemoteHost) for each in answers)
    assert (found[0] <= 3, found[1] <= 4, found[0] == 3 or found[1] >= 3) == (True, True, True), found


async def test_two_who_reach_for_the_last_room_do_not_both_get_it(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    caller = replace(await _admin(nodes.left, driver.workspace), quotas=Quotas(rooms=1))
    async with nodes.paused_at_table(rooms.create(nodes.left, caller, NewRoom("one")), at="audit") as first:
        second = await nodes.start_blocked(rooms.create(nodes.right, caller, NewRoom("two")))
    await first
    with pytest.raises(QuotaExceeded) as refused:
        await second
    assert (refused.value.quota, refused.value.limit) == ("rooms", 1)


async def test_a_place_that_an_archived_job_leaves_can_be_taken(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    from foliot.services.jobs.job_status import archive

    made = [await create(nodes.left, driver.workspace) for _ in range(3)]
    await archive(nodes.right, Scope(driver.workspace, ANA), made[0].id)
    await create(nodes.left, driver.workspace)


async def test_whoever_makes_a_job_while_its_workspace_is_put_away_is_refused(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    other = await workspaces.create(nodes.left, ANA, "acme", "Acme", "UTC", {})
    async with nodes.paused_at_table(workspaces.archive(nodes.left, ANA, other.id), at="audit") as first:
        second = await nodes.start_blocked(create(nodes.right, other.id))
    await first
    with pytest.raises(Conflict):
        await second
    assert owner.execute("SELECT count(*) FROM foliot.jobs").fetchone() == (0,)


async def test_a_job_made_while_its_workspace_is_put_away_goes_with_it(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    other = await workspaces.create(nodes.left, ANA, "acme", "Acme", "UTC", {})
    async with nodes.paused_at_table(create(nodes.left, other.id), at="audit") as first:
        second = await nodes.start_blocked(workspaces.archive(nodes.right, ANA, other.id))
    await first
    await second
    assert owner.execute("SELECT status FROM foliot.jobs").fetchall() == [("archived",)]


async def test_two_administrators_cannot_take_each_other_away(
    driver: ServiceDriver, nodes: RaceNodes, owner: psycopg.Connection[Any]
) -> None:
    first, second = [await _admin(nodes.left, driver.workspace) for _ in range(2)]
    async with nodes.paused_at_table(
        member_removal.remove(nodes.left, first, second.holder.principal.id), at="audit"
    ) as one:
        other = await nodes.start_blocked(
            member_removal.remove(nodes.right, second, first.holder.principal.id)
        )
    results = await asyncio.gather(one, other, return_exceptions=True)
    assert sum(isinstance(each, FoliotError) for each in results) == 1
    left = owner.execute(
        "SELECT count(*) FROM foliot.principals WHERE role = 'admin' AND active AND workspace_id IS NOT NULL"
    )
    assert left.fetchone() == (1,)


async def _admin(database: Database, workspace_id: WorkspaceId) -> Caller:
    principal = Principal(PrincipalId(uuid4()), workspace_id, PrincipalKind.USER, "ana", MemberRole.ADMIN)
    async with database.tx(Role.APP, workspace_id) as tx:
        await stored_members.insert_principal(tx, principal)
        home = await stored.get(tx, workspace_id)
    assert home is not None
    return Caller(KeyHolder(principal, KeyId(uuid4()), frozenset(), None), home, tx.now)
