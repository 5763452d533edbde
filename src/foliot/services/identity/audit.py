"""Search the audit log: who did what, when, with the values before and after."""

from __future__ import annotations

from uuid import UUID

from foliot.domain.access import Permission
from foliot.services.cursors import ListPage, cut_page, instant, read_cursor
from foliot.services.identity.authentication import Caller, require_permission
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditFilter, AuditRecord
from foliot.storage.tx import Database, Role

__all__ = ["AuditFilter", "AuditRecord"]


async def listed(
    database: Database,
    caller: Caller,
    wanted: AuditFilter,
    *,
    of_installation: bool = False,
    cursor: str | None = None,
    limit: int = 50,
) -> ListPage[AuditRecord]:
    """List entries, newest first. Entries outside any workspace need the system permission."""
    before = read_cursor(cursor, instant, UUID)
    if of_installation:
        require_permission(caller, Permission.SYSTEM)
    workspace_id = None if of_installation else caller.workspace_id
    is_system = caller.holder.may(Permission.SYSTEM)
    async with database.tx(Role.APP, workspace_id, system=is_system) as tx:
        found = await audit.list_records(tx, wanted, before, limit + 1)
    return cut_page(found, limit, lambda last: [last.at, last.id])
