"""A secret that is deleted while a job begins to name it, and a master key that two nodes make at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid
from foliot.services.jobs import jobs
from foliot.services.secrets import master_key, secrets
from foliot.services.secrets.vault import Vault
from foliot.testing.fixtures import TEST, InMemoryKeys, a_vault
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
NAMING = replace(definition(), config={"headers": {"x": {"secret": "crm"}}})


async def test_a_job_that_begins_to_name_a_secret_keeps_it_from_being_deleted(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    crm = await secrets.create(nodes.left, a_vault(), Scope(driver.workspace, TEST), "crm", "value")
    async with nodes.paused_at_table(
        jobs.create(nodes.left, Scope(driver.workspace, TEST), NAMING), at="audit"
    ) as first:
        second = await nodes.start_blocked(secrets.delete(nodes.right, Scope(driver.workspace, TEST), crm))
    await first
    with pytest.raises(Conflict, match="is used by"):
        await second


async def test_a_job_that_comes_behind_a_deletion_finds_the_secret_gone(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    crm = await secrets.create(nodes.left, a_vault(), Scope(driver.workspace, TEST), "crm", "value")
    async with nodes.paused_at_table(
        secrets.delete(nodes.left, Scope(driver.workspace, TEST), crm), at="audit"
    ) as first:
        second = await nodes.start_blocked(jobs.create(nodes.right, Scope(driver.workspace, TEST), NAMING))
    await first
    with pytest.raises(Invalid, match='no secret "crm"'):
        await second


async def test_of_two_new_values_at_once_both_are_versions_and_the_later_one_stays(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    vault = a_vault()
    crm = await secrets.create(nodes.left, vault, Scope(driver.workspace, TEST), "crm", "one")
    async with nodes.paused_at_table(
        secrets.replace(nodes.left, vault, Scope(driver.workspace, TEST), crm, "two"), at="audit"
    ) as first:
        second = await nodes.start_blocked(
            secrets.replace(nodes.right, vault, Scope(driver.workspace, TEST), crm, "three")
        )
    await asyncio.gather(first, second)
    assert (await secrets.get(nodes.left, Scope(driver.workspace), crm)).version == 3


async def test_of_two_nodes_that_start_at_once_one_makes_the_key(
    driver: ServiceDriver, nodes: RaceNodes
) -> None:
    sources = InMemoryKeys(), InMemoryKeys()
    found = await asyncio.gather(
        *(
            master_key.begin(side, Vault(source), makes=True)
            for side, source in zip((nodes.left, nodes.right), sources, strict=True)
        )
    )
    assert sorted(each.opens for each in found) == [False, True]
    assert sorted(len(source.keys) for source in sources) == [0, 1]
