"""/master-key: which keys this node opens secrets with, and a new one in their place. For whoever runs the installation."""

from __future__ import annotations

from foliot.services.secrets import master_key
from foliot.web.api.dry_run import DryRun
from foliot.web.api.params import Db
from foliot.web.api.secrets import TheVault
from foliot.web.auth import System
from foliot.web.routes import CONFLICT, WITH_BODY, api_router
from foliot.wire.dry_run import RotationDryRunOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, RotateIn

routes = api_router("secrets")


@routes.get("/master-key")
async def get_master_key(caller: System, db: Db, vault: TheVault) -> MasterKeyOut:
    """How the secrets of all workspaces stand with the keys of the node that answers."""
    found = await master_key.standing(db, vault)
    return MasterKeyOut(
        present=found.present,
        known=list(found.known),
        is_right=found.opens,
        secrets=found.secrets,
        under_other_keys=found.under_other_keys,
        unreadable=found.unreadable,
    )


@routes.post("/master-key/rotate", responses={**CONFLICT, **WITH_BODY})
async def rotate_master_key(
    wanted: RotateIn, caller: System, db: Db, vault: TheVault, dry_run: DryRun = False
) -> RotatedOut | RotationDryRunOut:
    """Seal with the present key what older ones have sealed, up to a thousand secrets; ask again while some are left."""
    if dry_run:
        tried = await master_key.try_rotation(
            db, vault, new_key=wanted.new_key, accept_loss=wanted.accept_loss
        )
        return RotationDryRunOut(rotated=tried.rotated, unreadable=tried.unreadable)
    done = await master_key.rotate(
        db, vault, caller.actor, new_key=wanted.new_key, accept_loss=wanted.accept_loss
    )
    return RotatedOut(present=done.present, rotated=done.rotated, left=done.left, unreadable=done.unreadable)
