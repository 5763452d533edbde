"""`client.secrets`: values that jobs use by name. They are written and never read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Generic, TypeVar

from foliot.sdk.asynchronous.http import AsyncHttp
from foliot.sdk.asynchronous.paging import each_of
from foliot.sdk.asynchronous.writes import AsyncWrites, Changed, Gone
from foliot.sdk.request import Ask, Ref, post
from foliot.sdk.response import Reader, check, reader
from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut, SecretUser
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

Rotated = TypeVar("Rotated")


class AsyncSecretWrites(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Rotated]):
    def __init__(
        self,
        http: AsyncHttp,
        changed: Reader[Changed],
        gone: Reader[Gone],
        rotated: Reader[Rotated],
        *,
        dry_run: bool = False,
    ) -> None:
        super().__init__(http, changed, gone, dry_run=dry_run)
        self._rotated = rotated

    async def create(self, name: str, value: str, *, agents: Sequence[Ref] = ()) -> Changed:
        body = {"name": name, "value": value, "agents": [str(each) for each in agents]}
        return await self._write(self._changed, post("/secrets", body=body))

    async def replace(self, secret_id: Ref, value: str) -> Changed:
        """A new value, as its next version; attempts that begin from now on get it."""
        ask = Ask("PUT", "/secrets/{secret_id}", {"secret_id": secret_id}, body={"value": value})
        return await self._write(self._changed, ask)

    async def give(self, secret_id: Ref, agents: Sequence[Ref]) -> Changed:
        """Which agents may name it in the jobs that they write."""
        body = {"agents": [str(each) for each in agents]}
        ask = Ask("PATCH", "/secrets/{secret_id}", {"secret_id": secret_id}, body=body)
        return await self._write(self._changed, ask)

    async def delete(self, secret_id: Ref, *, force: bool = False) -> Gone:
        """Refused while jobs name it, unless `force`; their runs then fail."""
        ask = Ask("DELETE", "/secrets/{secret_id}", {"secret_id": secret_id}, {"force": force})
        return await self._write(self._gone, ask)

    async def rotate(self, *, new_key: bool = False, accept_loss: bool = False) -> Rotated:
        """Seal with the present key what older ones have sealed, up to a thousand: repeat while some are left."""
        body = {"new_key": new_key, "accept_loss": accept_loss}
        return await self._write(self._rotated, post("/master-key/rotate", body=body))


class AsyncSecrets(AsyncSecretWrites[SecretOut, None, RotatedOut]):
    def __init__(self, http: AsyncHttp) -> None:
        super().__init__(http, reader(SecretOut), check, reader(RotatedOut))
        self.dry_run = AsyncSecretWrites(
            http, reader(SecretDryRunOut), reader(SecretDryRunOut), reader(RotationDryRunOut), dry_run=True
        )

    async def list(
        self, *, name: str | None = None, limit: int = PAGE, cursor: str | None = None
    ) -> Page[SecretOut]:
        """One page, in the order of their names, or the one of this name. Values are in no answer."""
        query = {"name": name, "limit": limit, "cursor": cursor}
        return await self._http.ask(Page[SecretOut], Ask("GET", "/secrets", query=query))

    def each(self) -> AsyncIterator[SecretOut]:
        """All of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, secret_id: Ref) -> SecretOut:
        return await self._http.ask(SecretOut, Ask("GET", "/secrets/{secret_id}", {"secret_id": secret_id}))

    async def set(self, name: str, value: str, *, agents: Sequence[Ref] | None = None) -> SecretOut:
        """Make it, or put a new value in the place of the one that there is. `agents` may name it in their jobs."""
        found = (await self.list(name=name)).items
        if not found:
            return await self.create(name, value, agents=agents or ())
        changed = await self.replace(found[0].id, value)
        return changed if agents is None else await self.give(changed.id, agents)

    async def jobs(self, secret_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[SecretUser]:
        """The jobs that name it."""
        query = {"limit": limit, "cursor": cursor}
        ask = Ask("GET", "/secrets/{secret_id}/jobs", {"secret_id": secret_id}, query)
        return await self._http.ask(Page[SecretUser], ask)

    async def master_key(self) -> MasterKeyOut:
        """How the secrets of all workspaces stand with the keys of the server. For system keys."""
        return await self._http.ask(MasterKeyOut, Ask("GET", "/master-key"))
