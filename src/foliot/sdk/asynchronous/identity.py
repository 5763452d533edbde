"""`client.keys`, `client.members` and `client.workspaces`: principals, their permissions and their workspaces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone, each_of
from foliot.sdk.request import ApiRequest, Ref, post, without_none
from foliot.sdk.response import Reader, raise_for_error, reader
from foliot.wire.dry_run import KeyDryRunOut, MemberDryRunOut, WorkspaceDryRunOut
from foliot.wire.identity import (
    InviteOut,
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
Invited = TypeVar("Invited")


class AsyncKeyWrites(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Made, Revoked]):
    def __init__(
        self,
        http: AsyncTransport,
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
        max_jobs: int | None = None,
        min_interval: int | None = None,
    ) -> Made:
        """Create a key for yourself or for a member. Only this response contains its `secret`.

        `max_jobs` and `min_interval` (seconds) bound the jobs that an agent makes with its key.
        """
        body = without_none(
            name=name,
            principal=principal,
            scopes=scopes,
            expires_at=expires_at,
            max_jobs=max_jobs,
            min_interval=min_interval,
        )
        return await self._write(self._made, post("/keys", body=body))

    async def change(self, key_id: Ref, **fields: Any) -> Changed:
        """Change the name, an earlier expiry, or fewer scopes: a key can only be narrowed."""
        return await self._change(ApiRequest("PATCH", "/keys/{key_id}", {"key_id": key_id}, body=fields))

    async def revoke(self, key_id: Ref, *, made_too: bool = False) -> Revoked:
        """Revoke a key permanently, everywhere within five seconds. With `made_too`, also every key made with it."""
        query = {"made_too": made_too}
        request = post("/keys/{key_id}/revoke", {"key_id": key_id}, query=query)
        return await self._write(self._revoked, request)

    async def delete(self, key_id: Ref, *, made_too: bool = False) -> Gone:
        """Do the same as `revoke`."""
        query = {"made_too": made_too}
        return await self._remove(ApiRequest("DELETE", "/keys/{key_id}", {"key_id": key_id}, query))


class AsyncKeysApi(AsyncKeyWrites[KeyOut, None, MadeKeyOut, RevokedKeyOut]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(KeyOut), raise_for_error, reader(MadeKeyOut), reader(RevokedKeyOut))
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
        """Return one page of your own keys, or for an administrator of all keys, newest first."""
        query = {"principal": principal, "revoked": revoked, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[KeyOut], "/keys", query=query)

    def each(self, *, principal: Ref | None = None, revoked: bool | None = None) -> AsyncIterator[KeyOut]:
        """Yield all of them."""
        return each_of(
            lambda cursor: self.list(principal=principal, revoked=revoked, limit=LONGEST_PAGE, cursor=cursor)
        )

    async def get(self, key_id: Ref) -> KeyOut:
        return await self._http.get(KeyOut, "/keys/{key_id}", {"key_id": key_id})


class AsyncMemberWrites(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Invited, Made]):
    def __init__(
        self,
        http: AsyncTransport,
        changed: Reader[Changed],
        gone: Reader[Gone],
        invited: Reader[Invited],
        made: Reader[Made],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._invited, self._made = invited, made

    async def invite(self, member_id: Ref, *, expires_at: datetime | str | None = None) -> Invited:
        """Make a link that signs the member in once and gives them a key of their own."""
        request = post(
            "/members/{member_id}/invite", {"member_id": member_id}, body=without_none(expires_at=expires_at)
        )
        return await self._write(self._invited, request)

    async def accept_invite(self) -> Made:
        """Replace the invite that this client has as its key by a lasting key. Only this response contains its `secret`."""
        return await self._write(self._made, post("/invites/accept"))

    async def create(self, name: str, *, kind: MemberKind, role: Role, email: str | None = None) -> Changed:
        """Add a principal to the workspace. Create a key for it with `client.keys.create`."""
        return await self._change(
            post("/members", body=without_none(name=name, kind=kind, role=role, email=email))
        )

    async def change(self, member_id: Ref, **fields: Any) -> Changed:
        """Change name, email, role or active."""
        request = ApiRequest("PATCH", "/members/{member_id}", {"member_id": member_id}, body=fields)
        return await self._change(request)

    async def delete(
        self,
        member_id: Ref,
        *,
        jobs: Literal["archive", "hand_over", "keep"] | None = None,
        to: str | None = None,
    ) -> Gone:
        """Deactivate a member and revoke its keys. An agent that has jobs needs a choice: `jobs`, and `to` for the new owner."""
        query = {"jobs": jobs, "to": to}
        return await self._remove(
            ApiRequest("DELETE", "/members/{member_id}", {"member_id": member_id}, query)
        )


class AsyncMembersApi(AsyncMemberWrites[MemberOut, None, InviteOut, MadeKeyOut]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(MemberOut), raise_for_error, reader(InviteOut), reader(MadeKeyOut))
        preview, key = reader(MemberDryRunOut), reader(KeyDryRunOut)
        self.dry_run = AsyncMemberWrites(http, preview, preview, key, key, dry_run=True)

    async def list(
        self,
        *,
        kind: MemberKind | None = None,
        active: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[MemberOut]:
        """Return one page, newest first."""
        query = {"kind": kind, "active": active, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[MemberOut], "/members", query=query)

    def each(self, *, kind: MemberKind | None = None, active: bool | None = None) -> AsyncIterator[MemberOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(kind=kind, active=active, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, member_id: Ref) -> MemberOut:
        return await self._http.get(MemberOut, "/members/{member_id}", {"member_id": member_id})


class AsyncWorkspaceWrites(AsyncWrites[Changed, Gone]):
    async def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        default_timezone: str | None = None,
        quotas: Quotas | Mapping[str, Any] | None = None,
    ) -> Changed:
        """Create an empty workspace."""
        body = without_none(slug=slug, name=name, default_timezone=default_timezone, quotas=quotas)
        return await self._change(post("/workspaces", body=body))

    async def change(self, workspace: Ref, **fields: Any) -> Changed:
        """Change name, default_timezone or quotas."""
        request = ApiRequest("PATCH", "/workspaces/{workspace}", {"workspace": workspace}, body=fields)
        return await self._change(request)

    async def delete(self, workspace: Ref) -> Gone:
        """Archive a workspace: revoke its keys, archive its jobs, cancel its runs."""
        return await self._remove(ApiRequest("DELETE", "/workspaces/{workspace}", {"workspace": workspace}))


class AsyncWorkspacesApi(AsyncWorkspaceWrites[WorkspaceOut, None]):
    """Workspaces of the installation; only for system keys."""

    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(WorkspaceOut), raise_for_error)
        preview = reader(WorkspaceDryRunOut)
        self.dry_run = AsyncWorkspaceWrites(http, preview, preview, dry_run=True)

    async def list(
        self, *, archived: bool = False, limit: int = PAGE, cursor: str | None = None
    ) -> Page[WorkspaceOut]:
        """Return one page, ordered by slug."""
        query = {"archived": archived, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[WorkspaceOut], "/workspaces", query=query)

    def each(self, *, archived: bool = False) -> AsyncIterator[WorkspaceOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(archived=archived, limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, workspace: Ref) -> WorkspaceOut:
        """Return a workspace by slug or id."""
        return await self._http.get(WorkspaceOut, "/workspaces/{workspace}", {"workspace": workspace})
