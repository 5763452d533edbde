"""The action handler with a real app: parameters reach the function by name; an unknown action is named."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from foliot import Foliot
from foliot.domain.outcomes import Failed, Succeeded
from foliot.handlers.action import ActionConfig
from foliot.handlers.python import PythonHandler, app_handlers
from foliot.handlers.registry import Assignment, HandlerResult
from foliot.sdk.context import Context

pytestmark = pytest.mark.anyio
app = Foliot("shop")
CTX = Context("w", "j", "job", "run-1", 1, 1, "schedule", datetime(2027, 1, 15, tzinfo=UTC))


@app.handler("vectorize")
async def vectorize(config: dict[str, Any], input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    return {"entity": config["entity"], "full": input.get("full", False)}


async def run(config: dict[str, Any], **given: Any) -> HandlerResult:
    ActionConfig.model_validate(config)
    python = PythonHandler()
    try:
        return await app_handlers(app, {"python": python})["action"].run(Assignment(CTX, config, given))
    finally:
        await python.close()


@pytest.mark.requirement("S2-11")
@pytest.mark.parametrize("parameters", [{"entity": "Leads"}, [{"Name": "entity", "Value": "Leads"}]])
async def test_parameters_reach_the_action_by_name(parameters: Any) -> None:
    result = await run({"action": "vectorize", "parameters": parameters}, full=True)
    assert isinstance(result.outcome, Succeeded)
    assert result.output == {"entity": "Leads", "full": True}


def test_a_parameter_that_is_named_twice_is_refused() -> None:
    twice = [{"Name": "entity", "Value": "Leads"}, {"Name": "entity", "Value": "Orders"}]
    with pytest.raises(ValueError, match="twice"):
        ActionConfig.model_validate({"action": "vectorize", "parameters": twice})


async def test_an_unknown_action_fails_for_good_and_names_the_known() -> None:
    result = await run({"action": "fly"})
    assert isinstance(result.outcome, Failed)
    assert (result.outcome.error.code, result.outcome.permanent) == ("action_unknown", True)
    assert "vectorize" in result.outcome.error.message
