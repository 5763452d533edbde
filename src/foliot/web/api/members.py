"""/members: the people, agents and services of a workspace; /me: the caller."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import PrincipalId
from foliot.services.hints import Hint
from foliot.services.identity import invites, member_removal, members, workspaces
from foliot.services.identity.keys import CreatedKey
from foliot.services.identity.member_removal import JobsOfMember
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import Admin, Invited, Viewer
from foliot.web.mapping.identity import (
    invite_out,
    key_out,
    made_key_out,
    me_out,
    member_out,
    member_preview,
    removal_preview,
)
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import KeyDryRunOut, MemberDryRunOut
from foliot.wire.identity import (
    InviteIn,
    InviteOut,
    MadeKeyOut,
    MemberIn,
    MemberKind,
    MemberOut,
    MemberPatch,
    MeOut,
)
from foliot.wire.shape import Page

routes = api_router("members")
MemberIdIn = Annotated[PrincipalId, path_id("member_id")]


@routes.get("/me")
async def who_am_i(
    caller: Viewer, db: Db, count: Annotated[bool, Query(description="Count the jobs.")] = True
) -> MeOut:
    """Return the caller's principal and key, and the workspace with its quotas."""
    return me_out(caller, await workspaces.count_jobs(db, caller.workspace_id) if count else None)


@routes.post(
    "/members", status_code=201, responses={**dry_run_response(MemberDryRunOut), **CONFLICT, **WITH_BODY}
)
async def create_member(member: MemberIn, caller: Admin, write: Writing) -> MemberOut | MemberDryRunOut:
    """Add a principal to the workspace. It needs a key: POST /keys with its id."""
    kind, role = PrincipalKind(member.kind), MemberRole(member.role)

    def answer(made: members.Member) -> MemberOut:
        write.set_location(f"members/{made.principal.id}")
        return member_out(made)

    return await write.apply_or_preview(
        lambda db: members.create(db, caller, kind, member.name.strip(), role, member.email),
        answer,
        lambda made: MemberDryRunOut(member=member_out(made)),
    )


@routes.get("/members")
async def list_members(
    caller: Viewer,
    db: Db,
    kind: Annotated[MemberKind | None, Query()] = None,
    active: Annotated[bool | None, Query(description="Filter by this flag.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[MemberOut]:
    """List members, newest first. An agent sees only itself."""
    wanted = members.MemberFilter(kind=None if kind is None else PrincipalKind(kind), is_active=active)
    page = await members.listed(db, caller, wanted, cursor=cursor, limit=limit)
    return Page[MemberOut](items=[member_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/members/{member_id}", responses=NOT_FOUND)
async def get_member(member_id: MemberIdIn, caller: Viewer, db: Db) -> MemberOut:
    """Get a member."""
    return member_out(await members.get(db, caller, member_id))


@routes.patch("/members/{member_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_member(
    member_id: MemberIdIn, member: MemberPatch, caller: Admin, write: Writing
) -> MemberOut | MemberDryRunOut:
    """Change name, address, role, quota of fires, or whether it is active. Its keys follow within seconds; deactivating revokes them."""
    wanted = members.MemberChanges(
        name=member.name and member.name.strip(),
        role=None if member.role is None else MemberRole(member.role),
        is_active=member.active,
        email=member.email,
        mails="email" in member.model_fields_set,
        fires_per_day=member.fires_per_day,
        budgets="fires_per_day" in member.model_fields_set,
    )
    return await write.apply_or_preview(
        lambda db: members.change(db, caller, member_id, wanted),
        lambda changed: member_out(changed.member),
        member_preview,
        Hint.KEYS,
    )


@routes.delete(
    "/members/{member_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(MemberDryRunOut), **NOT_FOUND, **CONFLICT},
)
async def remove_member(
    member_id: MemberIdIn,
    caller: Admin,
    write: Writing,
    jobs: Annotated[
        Literal["archive", "hand_over", "keep"] | None,
        Query(
            description="What happens to its jobs. An agent that has jobs is not removed without a choice."
        ),
    ] = None,
    to: Annotated[
        str | None,
        Query(
            min_length=1, max_length=320, description="With hand_over: name, id or address of the new owner."
        ),
    ] = None,
) -> Response | None:
    """Deactivate the member and revoke its keys. The record stays, because the audit and its jobs refer to it.

    Its jobs are archived, handed over or kept. Where some cannot be, the answer is 409 and names them; a repeat continues.
    """
    fate = None if jobs is None else JobsOfMember(jobs)
    return await write.delete_or_preview(
        lambda db: member_removal.remove(db, caller, member_id, fate, to),
        removal_preview,
        Hint.KEYS,
    )


@routes.post(
    "/members/{member_id}/invite",
    status_code=201,
    responses={**dry_run_response(KeyDryRunOut), **NOT_FOUND, **CONFLICT, **WITH_BODY},
)
async def invite_member(
    member_id: MemberIdIn, invite: InviteIn, caller: Admin, write: Writing
) -> InviteOut | KeyDryRunOut:
    """Make an invite for a person: a link that signs in once and gives a key of their own. Also for a member who lost theirs."""

    def answer(made: CreatedKey) -> InviteOut:
        write.response.headers["Cache-Control"] = "no-store"
        return invite_out(made)

    scoped = write.as_system(caller.workspace_id) if caller.holder.principal.is_system else write
    return await scoped.apply_or_preview(
        lambda db: invites.create(db, caller, member_id, invite.expires_at),
        answer,
        lambda made: KeyDryRunOut(key=key_out(made.key)),
    )


@routes.post("/invites/accept", status_code=201, responses=dry_run_response(KeyDryRunOut))
async def accept_invite(caller: Invited, write: Writing) -> MadeKeyOut | KeyDryRunOut:
    """Replace the invite that is sent as the key by a key of the member's own. An invite is accepted once."""

    def answer(made: CreatedKey) -> MadeKeyOut:
        write.response.headers["Cache-Control"] = "no-store"
        return made_key_out(made)

    return await write.as_system(caller.workspace_id).apply_or_preview(
        lambda db: invites.accept(db, caller),
        answer,
        lambda made: KeyDryRunOut(key=key_out(made.key)),
        Hint.KEYS,
    )
