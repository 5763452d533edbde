"""/runs: one record of the ledger."""

from __future__ import annotations

from foliot.domain.errors import NotFound
from foliot.services import history, listing
from foliot.services.in_hand import no_such
from foliot.web.api.params import Db, RunIdIn
from foliot.web.auth import Viewer
from foliot.web.present import run_out
from foliot.web.routes import NOT_FOUND, api_router
from foliot.wire.runs import RunOut

routes = api_router("runs")


@routes.get("/runs/{run_id}", responses=NOT_FOUND)
async def get_run(run_id: RunIdIn, caller: Viewer, db: Db) -> RunOut:
    record = await history.run(db, caller.workspace_id, run_id)
    if caller.only_owner is not None:
        try:
            await listing.job(db, caller.workspace_id, record.job_id, caller.only_owner)
        except NotFound:
            raise no_such("run") from None
    return run_out(record)
