"""Two imports of one record: the database keeps one job of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import ImportedAlready
from foliot.services.jobs import jobs
from foliot.testing.fixtures import ANA, BEN
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import ServiceDriver, definition

pytestmark = pytest.mark.anyio
RECORD = replace(
    definition(name="sync"), external_ref={"source": "crontab", "id": "sha256:1", "digest": "a", "raw": {}}
)
OTHER = replace(RECORD, external_ref={**(RECORD.external_ref or {}), "id": "sha256:2"})
COPY = replace(RECORD, external_ref={"source": "crontab", "id": "sha256:1"})


async def test_of_two_imports_of_one_record_one_creates_its_job(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    async with nodes.paused_at_table(
        jobs.create(nodes.left, Scope(driver.workspace, ANA), RECORD), at="audit"
    ) as first:
        second = await nodes.start_blocked(jobs.create(nodes.right, Scope(driver.workspace, BEN), RECORD))
    await first
    with pytest.raises(ImportedAlready):
        await second
    await jobs.create(nodes.right, Scope(driver.workspace, BEN), OTHER)
    await jobs.create(
        nodes.right, Scope(driver.workspace, BEN), COPY
    )  # made by a person: not an import's own
    assert driver.sql("SELECT count(*) FROM foliot.jobs") == [(3,)]
