# Made from sdk/asynchronous by ./dev format; edit it there.
"""`client.secrets`: values that jobs use by name. They are written and never read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import Reader, check, reader
from foliot.sdk.synchronous.http import Http
from foliot.sdk.synchronous.paging import each_of
from foliot.sdk.synchronous.writes import Changed, Gone, Writes
from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut, SecretUser
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

Rotated = TypeVar("Rotated")


class SecretWrites(Writes[Changed, Gone], Generic[Changed, Gone, Rotated]):
    def __init__(
        self,
        http: Http,
        changed: Reader[Changed],
        gone: Reader[Gone],
        rotated: Reader[Rotated],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._rotated = rotated

    def create(self, name: str, value: str, *, agents: Sequence[Ref] = ()) -> Changed:
        body = {"name": name, "value": value, "agents": [str(each) for each in agents]}
        return self._write(self._changed, post("/secrets", body=body))

    def replace(self, secret_id: Ref, value: str) -> Changed:
        """A new value, as its next version; attempts that begin from now on get it."""
        ask = Ask("PUT", "/secrets/{secret_id}", {"secret_id": secret_id}, body={"value": value})
        return self._write(self._changed, ask)

    def give(self, secret_id: Ref, agents: Sequence[Ref]) -> Changed:
        """Which agents may name it in the jobs that they write."""
        body = {"agents": [str(each) for each in agents]}
        ask = Ask("PATCH", "/secrets/{secret_id}", {"secret_id": secret_id}, body=body)
        return self._write(self._changed, ask)

    def delete(self, secret_id: Ref, *, force: bool = False) -> Gone:
        """Refused while jobs name it, unless `force`; their runs then fail."""
        ask = Ask("DELETE", "/secrets/{secret_id}", {"secret_id": secret_id}, {"force": force})
        return self._write(self._gone, ask)

    def rotate(self, *, new_key: bool = False, accept_loss: bool = False) -> Rotated:
        """Seal with the present key what older ones have sealed, up to a thousand: repeat while some are left."""
        body = {"new_key": new_key, "accept_loss": accept_loss}
        return self._write(self._rotated, post("/master-key/rotate", body=body))


class Secrets(SecretWrites[SecretOut, None, RotatedOut]):
    def __init__(self, http: Http) -> None:
        super().__init__(http, reader(SecretOut), check, reader(RotatedOut))
        self.dry_run = SecretWrites(
            http, reader(SecretDryRunOut), reader(SecretDryRunOut), reader(RotationDryRunOut), dry_run=True
        )

    def list(
        self, *, name: str | None = None, limit: int = PAGE, cursor: str | None = None
    ) -> Page[SecretOut]:
        """One page, in the order of their names, or the one of this name. Values are in no answer."""
        query = {"name": name, "limit": limit, "cursor": cursor}
        return self._http.ask(Page[SecretOut], Ask("GET", "/secrets", query=query))

    def each(self) -> Iterator[SecretOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    def get(self, secret_id: Ref) -> SecretOut:
        return self._http.ask(SecretOut, Ask("GET", "/secrets/{secret_id}", {"secret_id": secret_id}))

    def set(self, name: str, value: str, *, agents: Sequence[Ref] | None = None) -> SecretOut:
        """Make it, or put a new value in the place of the one that there is. `agents` may name it in their jobs."""
        found = (self.list(name=name)).items
        if not found:
            return self.create(name, value, agents=agents or ())
        changed = self.replace(found[0].id, value)
        return changed if agents is None else self.give(changed.id, agents)

    def jobs(self, secret_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[SecretUser]:
        """The jobs that name it."""
        query = {"limit": limit, "cursor": cursor}
        ask = Ask("GET", "/secrets/{secret_id}/jobs", {"secret_id": secret_id}, query)
        return self._http.ask(Page[SecretUser], ask)

    def master_key(self) -> MasterKeyOut:
        """How the secrets of all workspaces stand with the keys of the server. For system keys."""
        return self._http.ask(MasterKeyOut, Ask("GET", "/master-key"))
