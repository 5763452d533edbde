"""`client.secrets`: values that jobs use by name. They are written and never read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Generic, TypeVar

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone, each_of
from foliot.sdk.request import ApiRequest, Ref, post
from foliot.sdk.response import Reader, raise_for_error, reader
from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
from foliot.wire.secrets import MasterKeyOut, RotatedOut, SecretOut, SecretUser
from foliot.wire.shape import LONGEST_PAGE, PAGE, Page

Rotated = TypeVar("Rotated")


class AsyncSecretWrites(AsyncWrites[Changed, Gone], Generic[Changed, Gone, Rotated]):
    def __init__(
        self,
        http: AsyncTransport,
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
        return await self._change(post("/secrets", body=body))

    async def replace(self, secret_id: Ref, value: str) -> Changed:
        """Set a new value, as the next version. Attempts that start from now on get it."""
        request = ApiRequest("PUT", "/secrets/{secret_id}", {"secret_id": secret_id}, body={"value": value})
        return await self._change(request)

    async def give(self, secret_id: Ref, agents: Sequence[Ref]) -> Changed:
        """Set which agents may use it in their jobs."""
        body = {"agents": [str(each) for each in agents]}
        request = ApiRequest("PATCH", "/secrets/{secret_id}", {"secret_id": secret_id}, body=body)
        return await self._change(request)

    async def delete(self, secret_id: Ref, *, force: bool = False) -> Gone:
        """Delete a secret. Refused while jobs use it, unless `force`; their runs then fail."""
        request = ApiRequest("DELETE", "/secrets/{secret_id}", {"secret_id": secret_id}, {"force": force})
        return await self._remove(request)

    async def rotate(self, *, new_key: bool = False, accept_loss: bool = False) -> Rotated:
        """Encrypt up to a thousand secrets of older keys with the present key. Repeat while some are left."""
        body = {"new_key": new_key, "accept_loss": accept_loss}
        return await self._write(self._rotated, post("/master-key/rotate", body=body))


class AsyncSecretsApi(AsyncSecretWrites[SecretOut, None, RotatedOut]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(SecretOut), raise_for_error, reader(RotatedOut))
        self.dry_run = AsyncSecretWrites(
            http, reader(SecretDryRunOut), reader(SecretDryRunOut), reader(RotationDryRunOut), dry_run=True
        )

    async def list(
        self, *, name: str | None = None, limit: int = PAGE, cursor: str | None = None
    ) -> Page[SecretOut]:
        """Return one page ordered by name, or the secret with this name. No response contains values."""
        query = {"name": name, "limit": limit, "cursor": cursor}
        return await self._http.get(Page[SecretOut], "/secrets", query=query)

    def each(self) -> AsyncIterator[SecretOut]:
        """Yield all of them."""
        return each_of(lambda cursor: self.list(limit=LONGEST_PAGE, cursor=cursor))

    async def get(self, secret_id: Ref) -> SecretOut:
        return await self._http.get(SecretOut, "/secrets/{secret_id}", {"secret_id": secret_id})

    async def set(self, name: str, value: str, *, agents: Sequence[Ref] | None = None) -> SecretOut:
        """Create a secret, or set its new value. `agents` may use it in their jobs."""
        found = (await self.list(name=name)).items
        if not found:
            return await self.create(name, value, agents=agents or ())
        changed = await self.replace(found[0].id, value)
        return changed if agents is None else await self.give(changed.id, agents)

    async def jobs(self, secret_id: Ref, *, limit: int = PAGE, cursor: str | None = None) -> Page[SecretUser]:
        """Return one page of the jobs that use it."""
        query = {"limit": limit, "cursor": cursor}
        return await self._http.get(
            Page[SecretUser], "/secrets/{secret_id}/jobs", {"secret_id": secret_id}, query
        )

    async def master_key(self) -> MasterKeyOut:
        """Return the server's master keys and how many secrets each state has. Only for system keys."""
        return await self._http.get(MasterKeyOut, "/master-key")
