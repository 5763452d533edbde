"""`client.keys`, `client.members` and `client.workspaces`: who may do what, and where."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.response import Reader, check, reader
from foliot.wire.dry_run import KeyDryRunOut, MemberDryRunOut, WorkspaceDryRunOut
from foliot.wire.identity import (
    KeyOut,
    MadeKeyOut,
    MemberKind,
    MemberOut,
    Quotas,
    RevokedKeyOut,
    Role,
    Scope,
    WorkspaceOut,
)
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

Made = TypeVar("Made")
Revoked = TypeVar("Revoked")


class AsyncKeyWrites(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Made, Revoked]):
    def __init__(
        self,
        http: AsyncHttp,
        changed: Reader[Changed],
        gone: Reader[Gone],
        made: Reader[Made],
        revoked: Reader[Revoked],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._made, self._revoked = made, revoked

    async def create(
        self,
        name: str,
        *,
        principal: Ref | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at: datetime | str | None = None,
    ) -> Made:
        """For yourself, or for a member. Its `secret` is in this answer and nowhere else."""
        body = given(name=name, principal=principal, scopes=scopes, expires_at=expires_at)
        return await self._write(self._made, post("/keys", body=body))

    async def change(self, key_id: Ref, **fields: Any) -> Changed:
        """Another name, an earlier end, fewer scopes: a key is only ever narrowed."""
        return await self._write(
            self._changed, Ask("PATCH", "/keys/{key_id}", {"key_id": key_id}, body=fields)
        )

    async def revoke(self, key_id: Ref, *, made_too: bool = False) -> Revoked:
        """For good, everywhere within five seconds. Keys that it made go on, unless `made_too` ends them with it."""
        query = {"made_too": made_too}
        ask = post("/keys/{key_id}/revoke", {"key_id": key_id}, query=query)
        return await self._write(self._revoked, ask)

    async def delete(self, key_id: Ref, *, made_too: bool = False) -> Gone:
        """The same as revoke."""
        query = {"made_too": made_too}
        return await self._write(self._gone, Ask("DELETE", "/keys/{key_id}", {"key_id": key_id}, query))


class AsyncKeys(AsyncKeyWrites[KeyOut, None, MadeKeyOut, RevokedKeyOut]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(KeyOut), check, reader(MadeKeyOut), reader(RevokedKeyOut))
        preview = reader(KeyDryRunOut)
        self.dry_run = AsyncKeyWrites(http, preview, preview, preview, preview, dry_run=True)

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


class AsyncMemberWrites(AsyncWrites[Changed, Gone]):
    async def create(self, name: str, *, kind: MemberKind, role: Role, email: str | None = None) -> Changed:
        """A new principal of the workspace. It comes in with a key of its own."""
        return await self._write(
            self._changed, post("/members", body=given(name=name, kind=kind, role=role, email=email))
        )

    async def change(self, member_id: Ref, **fields: Any) -> Changed:
        """Name, email, role, active."""
        ask = Ask("PATCH", "/members/{member_id}", {"member_id": member_id}, body=fields)
        return await self._write(self._changed, ask)

    async def delete(self, member_id: Ref) -> Gone:
        """Deactivate it and revoke its keys."""
        return await self._write(self._gone, Ask("DELETE", "/members/{member_id}", {"member_id": member_id}))


class AsyncMembers(AsyncMemberWrites[MemberOut, None]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(MemberOut), check)
        preview = reader(MemberDryRunOut)
        self.dry_run = AsyncMemberWrites(http, preview, preview, dry_run=True)

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


class AsyncWorkspaceWrites(AsyncWrites[Changed, Gone]):
    async def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        default_timezone: str | None = None,
        quotas: Quotas | Mapping[str, Any] | None = None,
    ) -> Changed:
        """An empty workspace."""
        body = given(slug=slug, name=name, default_timezone=default_timezone, quotas=quotas)
        return await self._write(self._changed, post("/workspaces", body=body))

    async def change(self, workspace: Ref, **fields: Any) -> Changed:
        """Name, default_timezone, quotas."""
        ask = Ask("PATCH", "/workspaces/{workspace}", {"workspace": workspace}, body=fields)
        return await self._write(self._changed, ask)

    async def delete(self, workspace: Ref) -> Gone:
        """Put it away: its keys end, its jobs are archived, its runs are cancelled."""
        return await self._write(
            self._gone, Ask("DELETE", "/workspaces/{workspace}", {"workspace": workspace})
        )


class AsyncWorkspaces(AsyncWorkspaceWrites[WorkspaceOut, None]):
    """For system keys."""

    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(WorkspaceOut), check)
        preview = reader(WorkspaceDryRunOut)
        self.dry_run = AsyncWorkspaceWrites(http, preview, preview, dry_run=True)

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
