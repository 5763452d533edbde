"""`client.limits`: how many runs may execute at a time. `client.budgets`: how much they may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foliot.sdk.asynchronous.http import AsyncTransport, AsyncWrites, Changed, Gone
from foliot.sdk.request import ApiRequest, without_none
from foliot.sdk.response import raise_for_error, reader
from foliot.wire.fleet import LimitOut, LimitsOut
from foliot.wire.usage import BudgetIn, BudgetsOut


class AsyncLimitWrites(AsyncWrites[Changed, Gone]):
    """`key` is a concurrency key of jobs. Without it the limit is for the whole workspace, and an administrator sets it."""

    async def set(self, cap: int, *, key: str | None = None) -> Changed:
        """Allow at most `cap` runs at a time. Runs under way continue."""
        return await self._change(ApiRequest("PUT", "/limits", body=without_none(key=key, cap=cap)))

    async def remove(self, *, key: str | None = None) -> Gone:
        """Remove a limit. Runs that waited for it start."""
        return await self._remove(ApiRequest("DELETE", "/limits", query={"key": key}))


class AsyncLimitsApi(AsyncLimitWrites[LimitOut, None]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(LimitOut), raise_for_error)
        self.dry_run = AsyncLimitWrites(http, reader(LimitOut), reader(LimitOut), dry_run=True)

    async def list(self) -> LimitsOut:
        return await self._http.get(LimitsOut, "/limits")


class AsyncBudgetWrites(AsyncWrites[Changed, None]):
    async def set(self, budgets: Sequence[BudgetIn | Mapping[str, Any]]) -> Changed:
        """Replace the budgets of the workspace, such as [{"unit": "usd", "amount": "25", "period": "month"}]. For administrators."""
        items = [
            each.model_dump(mode="json") if isinstance(each, BudgetIn) else dict(each) for each in budgets
        ]
        return await self._change(ApiRequest("PUT", "/budgets", body={"items": items}))


class AsyncBudgetsApi(AsyncBudgetWrites[BudgetsOut]):
    def __init__(self, http: AsyncTransport) -> None:
        super().__init__(http, reader(BudgetsOut), raise_for_error)
        self.dry_run = AsyncBudgetWrites(http, reader(BudgetsOut), raise_for_error, dry_run=True)

    async def list(self) -> BudgetsOut:
        return await self._http.get(BudgetsOut, "/budgets")
