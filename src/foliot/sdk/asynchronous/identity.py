"""`client.keys`, `client.members` and `client.workspaces`: who may do what, and where."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.identity_dry_runs import (
    AsyncKeyDryRuns,
    AsyncMemberDryRuns,
    AsyncWorkspaceDryRuns,
)
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.request import Ask, Ref, given, post
from foliot.wire.identity import KeyOut, MadeKeyOut, MemberKind, MemberOut, RevokedKeyOut, Role, Scope
from foliot.wire.pages import LONGEST_PAGE, PAGE, Page
from foliot.wire.workspaces import Quotas, WorkspaceOut


class AsyncKeys:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.dry_run = AsyncKeyDryRuns(http)

    async def list(
        self,
        *,
        principal: Ref | None = None,
        revoked: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[KeyOut]:
        """Your own; for an administrator, all of the workspace. Newest first."""
        query = {"principal": principal, "revoked": revoked, "limit": limit, "cursor": cursor}
        return await self._http.ask(Page[KeyOut], Ask("GET", "/keys", query=query))

    def each(self, *, principal: Ref | None = None, revoked: bool | None = None) -> AsyncIterator[KeyOut]:
        """All of them."""
        return each_of(
            lambda cursor: self.list(principal=principal, revoked=revoked, limit=LONGEST_PAGE, cursor=cursor)
        )

    async def get(self, key_id: Ref) -> KeyOut:
        return await self._http.ask(KeyOut, Ask("GET", "/keys/{key_id}", {"key_id": key_id}))

    async def create(
        self,
        name: str,
        *,
        principal: Ref | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at: datetime | str | None = None,
    ) -> MadeKeyOut:
        """For yourself, or for a member. Its `secret` is in this answer and nowhere else."""
        body = given(name=name, principal=principal, scopes=scopes, expires_at=expires_at)
        return await self._http.ask(MadeKeyOut, post("/keys", body=body))

    async def change(self, key_id: Ref, **fields: Any) -> KeyOut:
        """Another name, an earlier end, fewer scopes: a key is only ever narrowed."""
        return await self._http.ask(KeyOut, Ask("PATCH", "/keys/{key_id}", {"key_id": key_id}, body=fields))

    async def revoke(self, key_id: Ref, *, made_too: bool = False) -> RevokedKeyOut:
        """For good, everywhere within five seconds. Keys that it made go on, unless `made_too` ends them with it."""
        query = {"made_too": made_too}
        ask = post("/keys/{key_id}/revoke", {"key_id": key_id}, query=query)
        return await self._http.ask(RevokedKeyOut, ask)

    async def delete(self, key_id: Ref, *, made_too: bool = False) -> None:
        """The same as revoke."""
        query = {"made_too": made_too}
        await self._http.tell(Ask("DELETE", "/keys/{key_id}", {"key_id": key_id}, query))


class AsyncMembers:
    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.dry_run = AsyncMemberDryRuns(http)

    async def list(
        self,
        *,
        kind: MemberKind | None = None,
        active: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[MemberOut]:
        """One page, newest first."""
        query = {"kind": kind, "active": active, "limit": limit, "cursor": cursor}
        return await self._http.ask(Page[MemberOut], Ask("GET", "/members", query=query))

    def each(self, *, kind: MemberKind | None = None, active: bool | None = None) -> AsyncIterator[MemberOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(kind=kind, active=active, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, member_id: Ref) -> MemberOut:
        ask = Ask("GET", "/members/{member_id}", {"member_id": member_id})
        return await self._http.ask(MemberOut, ask)

    async def create(self, name: str, *, kind: MemberKind, role: Role, email: str | None = None) -> MemberOut:
        """A new principal of the workspace. It comes in with a key of its own."""
        return await self._http.ask(
            MemberOut, post("/members", body=given(name=name, kind=kind, role=role, email=email))
        )

    async def change(self, member_id: Ref, **fields: Any) -> MemberOut:
        """Name, email, role, active."""
        ask = Ask("PATCH", "/members/{member_id}", {"member_id": member_id}, body=fields)
        return await self._http.ask(MemberOut, ask)

    async def delete(self, member_id: Ref) -> None:
        """Deactivate it and revoke its keys."""
        await self._http.tell(Ask("DELETE", "/members/{member_id}", {"member_id": member_id}))


class AsyncWorkspaces:
    """For system keys."""

    def __init__(self, http: AsyncHttp) -> None:
        self._http = http
        self.dry_run = AsyncWorkspaceDryRuns(http)

    async def list(
        self, *, archived: bool = False, limit: int = PAGE, cursor: str | None = None
    ) -> Page[WorkspaceOut]:
        """One page, in the order of their slugs."""
        query = {"archived": archived, "limit": limit, "cursor": cursor}
        return await self._http.ask(Page[WorkspaceOut], Ask("GET", "/workspaces", query=query))

    def each(self, *, archived: bool = False) -> AsyncIterator[WorkspaceOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(archived=archived, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, workspace: Ref) -> WorkspaceOut:
        """By its slug or id."""
        ask = Ask("GET", "/workspaces/{workspace}", {"workspace": workspace})
        return await self._http.ask(WorkspaceOut, ask)

    async def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        default_timezone: str | None = None,
        quotas: Quotas | Mapping[str, Any] | None = None,
    ) -> WorkspaceOut:
        """An empty workspace."""
        body = given(slug=slug, name=name, default_timezone=default_timezone, quotas=quotas)
        return await self._http.ask(WorkspaceOut, post("/workspaces", body=body))

    async def change(self, workspace: Ref, **fields: Any) -> WorkspaceOut:
        """Name, default_timezone, quotas."""
        ask = Ask("PATCH", "/workspaces/{workspace}", {"workspace": workspace}, body=fields)
        return await self._http.ask(WorkspaceOut, ask)

    async def delete(self, workspace: Ref) -> None:
        """Put it away: its keys end, its jobs are archived, its runs are cancelled."""
        await self._http.tell(Ask("DELETE", "/workspaces/{workspace}", {"workspace": workspace}))
