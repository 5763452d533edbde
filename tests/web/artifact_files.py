"""Store an artifact of a run without a worker."""

from __future__ import annotations

from uuid import UUID, uuid4

from foliot.domain.ids import RunId, WorkerId
from foliot.storage.content import artifacts
from foliot.storage.content.artifacts import NewArtifact
from foliot.storage.queries import sql
from foliot.storage.tx import Database, Role

FILE = "canary-shared.txt"


async def store_artifact(database: Database, run: str) -> str:
    run_id = RunId(UUID(run))
    given = NewArtifact(run_id, 1, WorkerId(uuid4()), 1, FILE, "text/plain", b"canary-5b1f")
    async with database.tx(Role.ENGINE) as tx:
        row = await tx.fetch_one(sql.run_history.load_run, {"run_id": run_id})
        assert row is not None
        await artifacts.store(tx, row["workspace_id"], given)
    return FILE
