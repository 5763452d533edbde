"""`event`: tell a workflow engine that a planned time has come. `{"event" (schedule), "url", "workflow_id", "trigger_node_id", …}`.

The body is `{"event", "scheduled_job_id", "scheduled_job_name", "repeat_number", "payload", "workflow_id", "trigger_node_id"}`. The
endpoint answers when the work has ended, or with 202 and a Location to ask for its end: an accepted event is not a success.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StringConstraints

from foliot.handlers.config_fields import Text
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.http import HttpConfig, HttpHandler, SuccessWhen, check_address
from foliot.handlers.registry import Assignment, HandlerResult, failed
from foliot.wire.shape import described


class EventConfig(HttpConfig):
    event: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "schedule"
    url: Annotated[Text, AfterValidator(check_address)] | None = Field(
        default=None, description="The endpoint. Left out: the one of the setting event_url."
    )
    workflow_id: int | str | None = Field(default=None, description="Sent with the event, as it is.")
    trigger_node_id: str | None = Field(default=None, max_length=200, description="Sent with the event.")
    success_when: SuccessWhen | None = Field(
        default=SuccessWhen(), description="How to ask for the end of work that was accepted with 202."
    )
    body: None = Field(default=None, description="None: the event is the body.")
    method: str = Field(default="POST", pattern=described("^POST$", "An event is sent by POST."))


class EventHandler:
    description: ClassVar = "Send an event to a workflow engine, and wait for the outcome."
    config_shape: ClassVar = EventConfig

    def __init__(self, http: HttpHandler, url: str | None = None) -> None:
        self._http = http
        self._url = url

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> EventHandler:
        return cls(HttpHandler.from_deps(deps), deps.event_url)

    async def run(self, assignment: Assignment) -> HandlerResult:
        config, ctx = assignment.config, assignment.ctx
        url = config.get("url") or self._url
        if url is None:
            message = "No endpoint takes this event: give the job a url, or the worker the setting event_url."
            return failed("event_unheard", message)
        event: dict[str, Any] = {
            "event": config.get("event", "schedule"),
            # Placeholders, which the request fills in once: braces in a name or a payload stay as they are.
            "scheduled_job_id": "{{job.id}}",
            "scheduled_job_name": "{{job.name}}",
            "repeat_number": max(0, ctx.number - 1),
            "payload": "{{run.input}}",
            "workflow_id": config.get("workflow_id"),
            "trigger_node_id": config.get("trigger_node_id"),
        }
        kept = {
            name: config[name]
            for name in ("headers", "success", "timeout", "sign", "usage")
            if name in config
        }
        asking = config.get("success_when", SuccessWhen().model_dump(mode="json"))
        request = {"url": url, **kept, "body": event, "success_when": asking}
        return await self._http.run(replace(assignment, config=request))

    async def close(self) -> None:
        await self._http.close()
