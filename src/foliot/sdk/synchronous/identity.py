# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.keys`, `client.members` and `client.workspaces`: who may do what, and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.response import Reader, check, reader
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.writes import Changed, Gone, Writes
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


class KeyWrites(Writes[Changed, Gone], Generic[Changed, Gone, Made, Revoked]):
    def __init__(
        self,
        http: Http,
        changed: Reader[Changed],
        gone: Reader[Gone],
        made: Reader[Made],
        revoked: Reader[Revoked],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._made, self._revoked = made, revoked

    def create(
        self,
        name: str,
        *,
        principal: Ref | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at: datetime | str | None = None,
    ) -> Made:
        """For yourself, or for a member. Its `secret` is in this answer and nowhere else."""
        body = given(name=name, principal=principal, scopes=scopes, expires_at=expires_at)
        return self._write(self._made, post("/keys", body=body))

    def change(self, key_id: Ref, **fields: Any) -> Changed:
        """Another name, an earlier end, fewer scopes: a key is only ever narrowed."""
        return self._write(self._changed, Ask("PATCH", "/keys/{key_id}", {"key_id": key_id}, body=fields))

    def revoke(self, key_id: Ref, *, made_too: bool = False) -> Revoked:
        """For good, everywhere within five seconds. Keys that it made go on, unless `made_too` ends them with it."""
        query = {"made_too": made_too}
        ask = post("/keys/{key_id}/revoke", {"key_id": key_id}, query=query)
        return self._write(self._revoked, ask)

    def delete(self, key_id: Ref, *, made_too: bool = False) -> Gone:
        """The same as revoke."""
        query = {"made_too": made_too}
        return self._write(self._gone, Ask("DELETE", "/keys/{key_id}", {"key_id": key_id}, query))


class Keys(KeyWrites[KeyOut, None, MadeKeyOut, RevokedKeyOut]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(KeyOut), check, reader(MadeKeyOut), reader(RevokedKeyOut))
        preview = reader(KeyDryRunOut)
        self.dry_run = KeyWrites(http, preview, preview, preview, preview, dry_run=True)

    def list(
        self,
        *,
        principal: Ref | None = None,
        revoked: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[KeyOut]:
        """Your own; for an administrator, all of the workspace. Newest first."""
        query = {"principal": principal, "revoked": revoked, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[KeyOut], Ask("GET", "/keys", query=query))

    def each(self, *, principal: Ref | None = None, revoked: bool | None = None) -> Iterator[KeyOut]:
        """All of them."""
        return each_of(
            lambda cursor: self.list(principal=principal, revoked=revoked, limit=LONGEST_PAGE, cursor=cursor)
        )

    def get(self, key_id: Ref) -> KeyOut:
        return self._http.ask(KeyOut, Ask("GET", "/keys/{key_id}", {"key_id": key_id}))


class MemberWrites(Writes[Changed, Gone]):
    def create(self, name: str, *, kind: MemberKind, role: Role, email: str | None = None) -> Changed:
        """A new principal of the workspace. It comes in with a key of its own."""
        return self._write(
            self._changed, post("/members", body=given(name=name, kind=kind, role=role, email=email))
        )

    def change(self, member_id: Ref, **fields: Any) -> Changed:
        """Name, email, role, active."""
        ask = Ask("PATCH", "/members/{member_id}", {"member_id": member_id}, body=fields)
        return self._write(self._changed, ask)

    def delete(self, member_id: Ref) -> Gone:
        """Deactivate it and revoke its keys."""
        return self._write(self._gone, Ask("DELETE", "/members/{member_id}", {"member_id": member_id}))


class Members(MemberWrites[MemberOut, None]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(MemberOut), check)
        preview = reader(MemberDryRunOut)
        self.dry_run = MemberWrites(http, preview, preview, dry_run=True)

    def list(
        self,
        *,
        kind: MemberKind | None = None,
        active: bool | None = None,
        limit: int = PAGE,
        cursor: str | None = None,
    ) -> Page[MemberOut]:
        """One page, newest first."""
        query = {"kind": kind, "active": active, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[MemberOut], Ask("GET", "/members", query=query))

    def each(self, *, kind: MemberKind | None = None, active: bool | None = None) -> Iterator[MemberOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(kind=kind, active=active, limit=LONGEST_PAGE, cursor=cursor))

    def get(self, member_id: Ref) -> MemberOut:
        ask = Ask("GET", "/members/{member_id}", {"member_id": member_id})
        return self._http.ask(MemberOut, ask)


class WorkspaceWrites(Writes[Changed, Gone]):
    def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        default_timezone: str | None = None,
        quotas: Quotas | Mapping[str, Any] | None = None,
    ) -> Changed:
        """An empty workspace."""
        body = given(slug=slug, name=name, default_timezone=default_timezone, quotas=quotas)
        return self._write(self._changed, post("/workspaces", body=body))

    def change(self, workspace: Ref, **fields: Any) -> Changed:
        """Name, default_timezone, quotas."""
        ask = Ask("PATCH", "/workspaces/{workspace}", {"workspace": workspace}, body=fields)
        return self._write(self._changed, ask)

    def delete(self, workspace: Ref) -> Gone:
        """Put it away: its keys end, its jobs are archived, its runs are cancelled."""
        return self._write(self._gone, Ask("DELETE", "/workspaces/{workspace}", {"workspace": workspace}))


class Workspaces(WorkspaceWrites[WorkspaceOut, None]):
    """For system keys."""

    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(WorkspaceOut), check)
        preview = reader(WorkspaceDryRunOut)
        self.dry_run = WorkspaceWrites(http, preview, preview, dry_run=True)

    def list(
        self, *, archived: bool = False, limit: int = PAGE, cursor: str | None = None
    ) -> Page[WorkspaceOut]:
        """One page, in the order of their slugs."""
        query = {"archived": archived, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[WorkspaceOut], Ask("GET", "/workspaces", query=query))

    def each(self, *, archived: bool = False) -> Iterator[WorkspaceOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(archived=archived, limit=LONGEST_PAGE, cursor=cursor))

    def get(self, workspace: Ref) -> WorkspaceOut:
        """By its slug or id."""
        ask = Ask("GET", "/workspaces/{workspace}", {"workspace": workspace})
        return self._http.ask(WorkspaceOut, ask)
