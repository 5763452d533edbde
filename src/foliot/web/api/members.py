"""/members: the people, agents and services of a workspace; and /me, who is asking."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Path, Query, Response

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import PrincipalId
from foliot.services import Database
from foliot.services.dry_run import rehearsed
from foliot.services.identity import members, workspaces
from foliot.services.identity.authentication import Caller
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import DEFAULT_LIMIT, Changed, Cursor, Db, Limit, id_of
from foliot.web.auth import Admin, Viewer
from foliot.web.mapping.identity import me_out, member_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import MemberDryRunOut
from foliot.wire.identity import MemberIn, MemberKind, MemberOut, MemberPatch, MeOut
from foliot.wire.pages import Page

routes = api_router("members")
MemberIdIn = Annotated[str, Path(alias="member_id", json_schema_extra={"format": "uuid"})]


@routes.get("/me")
async def who_am_i(caller: Viewer, db: Db) -> MeOut:
    """The principal and the key that ask, the workspace they are in, and what holds there."""
    return me_out(caller, await workspaces.count_jobs(db, caller.workspace_id))


@routes.post("/members", status_code=201, responses={**only_tried(MemberDryRunOut), **CONFLICT, **WITH_BODY})
async def create_member(
    member: MemberIn, caller: Admin, db: Db, response: Response, dry_run: DryRun = False
) -> MemberOut | MemberDryRunOut:
    """A new principal of the workspace. It comes in with a key: POST /keys with its id."""
    kind, role = PrincipalKind(member.kind), MemberRole(member.role)

    async def act(db: Database) -> members.Member:
        return await members.create(db, caller, kind, member.name.strip(), role, member.email)

    if dry_run:
        response.status_code = 200
        return MemberDryRunOut(member=member_out(await rehearsed(db, caller.workspace_id, act)))
    made = await act(db)
    response.headers["Location"] = f"/api/v1/members/{made.principal.id}"
    return member_out(made)


@routes.get("/members")
async def list_members(
    caller: Viewer,
    db: Db,
    kind: Annotated[MemberKind | None, Query()] = None,
    active: Annotated[bool | None, Query(description="Only those, or only the others.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[MemberOut]:
    """Newest first. An agent sees itself alone."""
    wanted = members.MemberFilter(kind=None if kind is None else PrincipalKind(kind), is_active=active)
    page = await members.listed(db, caller, wanted, cursor=cursor, limit=limit)
    return Page[MemberOut](items=[member_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/members/{member_id}", responses=NOT_FOUND)
async def get_member(member_id: MemberIdIn, caller: Viewer, db: Db) -> MemberOut:
    return member_out(await members.get(db, caller, _member_id(member_id)))


@routes.patch("/members/{member_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_member(
    member_id: MemberIdIn,
    member: MemberPatch,
    caller: Admin,
    db: Db,
    changed: Changed,
    dry_run: DryRun = False,
) -> MemberOut | MemberDryRunOut:
    """Name, address, role, and whether it is active. Its keys follow within seconds; without it being active they are revoked."""
    wanted = members.Changes(
        name=member.name and member.name.strip(),
        role=None if member.role is None else MemberRole(member.role),
        is_active=member.active,
        email=member.email,
        mails="email" in member.model_fields_set,
    )
    found = _member_id(member_id)
    if dry_run:
        return await _tried(db, caller, lambda stage: members.change(stage, caller, found, wanted))
    after = await members.change(db, caller, found, wanted)
    changed()
    return member_out(after.member)


@routes.delete(
    "/members/{member_id}",
    status_code=204,
    response_model=None,
    responses={**only_tried(MemberDryRunOut), **NOT_FOUND, **CONFLICT},
)
async def remove_member(
    member_id: MemberIdIn, caller: Admin, db: Db, changed: Changed, dry_run: DryRun = False
) -> Response | None:
    """Deactivate it and revoke its keys; the record stays, for the audit and its jobs speak of it."""
    found = _member_id(member_id)
    if dry_run:
        return shown(await _tried(db, caller, lambda stage: members.remove(stage, caller, found)))
    await members.remove(db, caller, found)
    changed()
    return None


async def _tried(
    db: Database, caller: Caller, act: Callable[[Database], Awaitable[members.Changed]]
) -> MemberDryRunOut:
    tried = await rehearsed(db, caller.workspace_id, act)
    return MemberDryRunOut(member=member_out(tried.member), revoked_keys=tried.revoked_keys)


def _member_id(text: str) -> PrincipalId:
    return PrincipalId(id_of("member", text))
