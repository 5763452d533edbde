"""Two settlements that add usage to one sum, and a budget that is set meanwhile."""

from __future__ import annotations

from decimal import Decimal

import pytest

from foliot.domain.access import Scope
from foliot.domain.usage import Budget, BudgetAction
from foliot.services.runs import usage
from foliot.services.settlement.report import report
from foliot.testing.fixtures import ANA
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import MINUTE, ServiceDriver
from tests.services.test_usage import days, notices, spent

pytestmark = pytest.mark.anyio


async def test_two_settlements_at_once_lose_nothing(nodes: RaceNodes, driver: ServiceDriver) -> None:
    """Both add to the sum of the workspace; the second waits for the first and adds to what that wrote."""
    budget = Budget("usd", Decimal(2), action=BudgetAction.WARN, warn_at=None)
    scope = Scope(driver.workspace, ANA)
    await usage.set_budgets(driver.database, scope, [budget])
    for _ in range(2):
        await driver.job()
    await driver.tick(MINUTE)
    left, right = await driver.claim()
    async with nodes.paused_at_table(report(nodes.left, [spent(driver, left, usd="1")]), at="runs") as first:
        second = await nodes.start_blocked(report(nodes.right, [spent(driver, right, usd="1")]))
    await first
    await second
    assert days(driver, driver.workspace) == {"usd": Decimal(2)}
    assert notices(driver) == [("budget_exceeded", "2 of 2 usd used this month (UTC).")]


async def test_usage_that_is_added_while_a_budget_is_set_is_judged_by_one_of_the_two(
    nodes: RaceNodes, driver: ServiceDriver
) -> None:
    """A budget that is set waits for usage under way, and usage waits for a budget: one of them sees both."""
    scope = Scope(driver.workspace, ANA)
    await driver.job()
    await driver.tick(MINUTE)
    [claimed] = await driver.claim()
    async with nodes.paused_at_table(
        report(nodes.left, [spent(driver, claimed, usd="2")]), at="runs"
    ) as first:
        second = await nodes.start_blocked(
            usage.set_budgets(nodes.right, scope, [Budget("usd", Decimal(1), warn_at=None)])
        )
    await first
    await second
    assert (await usage.list_budgets(driver.database, scope)).closed_until is not None

    await usage.set_budgets(driver.database, scope, [])
    await driver.tick(MINUTE)
    [claimed] = await driver.claim()
    async with nodes.paused_at_table(
        usage.set_budgets(nodes.left, scope, [Budget("usd", Decimal(3), warn_at=None)]), at="audit"
    ) as first_set:
        then = await nodes.start_blocked(report(nodes.right, [spent(driver, claimed, usd="1")]))
    await first_set
    await then
    assert (await usage.list_budgets(driver.database, scope)).closed_until is not None
