# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.keys.dry_run`, `client.members.dry_run` and `client.workspaces.dry_run`: the same verbs, and nothing is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from foliot.sdk.request import Ask, Ref, given, post
from foliot.sdk.synchronous.http import Http
from foliot.wire.dry_run import KeyDryRunOut, MemberDryRunOut, WorkspaceDryRunOut
from foliot.wire.identity import MemberKind, Role, Scope
from foliot.wire.workspaces import Quotas


class KeyDryRuns:
    """None of them shows a secret: there is no key."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        name: str,
        *,
        principal: Ref | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at: datetime | str | None = None,
    ) -> KeyDryRunOut:
        body = given(name=name, principal=principal, scopes=scopes, expires_at=expires_at)
        return self._http.ask(KeyDryRunOut, post("/keys", body=body, query={"dry_run": True}))

    def change(self, key_id: Ref, **fields: Any) -> KeyDryRunOut:
        ids, query = {"key_id": key_id}, {"dry_run": True}
        return self._http.ask(KeyDryRunOut, Ask("PATCH", "/keys/{key_id}", ids, query, fields))

    def revoke(self, key_id: Ref, *, made_too: bool = False) -> KeyDryRunOut:
        ids, query = {"key_id": key_id}, {"made_too": made_too, "dry_run": True}
        return self._http.ask(KeyDryRunOut, post("/keys/{key_id}/revoke", ids, query=query))

    def delete(self, key_id: Ref, *, made_too: bool = False) -> KeyDryRunOut:
        ids, query = {"key_id": key_id}, {"made_too": made_too, "dry_run": True}
        return self._http.ask(KeyDryRunOut, Ask("DELETE", "/keys/{key_id}", ids, query))


class MemberDryRuns:
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, name: str, *, kind: MemberKind, role: Role, email: str | None = None) -> MemberDryRunOut:
        body = given(name=name, kind=kind, role=role, email=email)
        return self._http.ask(MemberDryRunOut, post("/members", body=body, query={"dry_run": True}))

    def change(self, member_id: Ref, **fields: Any) -> MemberDryRunOut:
        ids, query = {"member_id": member_id}, {"dry_run": True}
        return self._http.ask(MemberDryRunOut, Ask("PATCH", "/members/{member_id}", ids, query, fields))

    def delete(self, member_id: Ref) -> MemberDryRunOut:
        ids, query = {"member_id": member_id}, {"dry_run": True}
        return self._http.ask(MemberDryRunOut, Ask("DELETE", "/members/{member_id}", ids, query))


class WorkspaceDryRuns:
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(
        self,
        slug: str,
        *,
        name: str | None = None,
        default_timezone: str | None = None,
        quotas: Quotas | Mapping[str, Any] | None = None,
    ) -> WorkspaceDryRunOut:
        body = given(slug=slug, name=name, default_timezone=default_timezone, quotas=quotas)
        ask = post("/workspaces", body=body, query={"dry_run": True})
        return self._http.ask(WorkspaceDryRunOut, ask)

    def change(self, workspace: Ref, **fields: Any) -> WorkspaceDryRunOut:
        ids, query = {"workspace": workspace}, {"dry_run": True}
        ask = Ask("PATCH", "/workspaces/{workspace}", ids, query, fields)
        return self._http.ask(WorkspaceDryRunOut, ask)

    def delete(self, workspace: Ref) -> WorkspaceDryRunOut:
        """What would end with it."""
        ids, query = {"workspace": workspace}, {"dry_run": True}
        ask = Ask("DELETE", "/workspaces/{workspace}", ids, query)
        return self._http.ask(WorkspaceDryRunOut, ask)
