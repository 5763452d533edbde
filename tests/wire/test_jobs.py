"""The shapes say what the domain means: the same defaults, the same words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args
from uuid import uuid4

import pytest

from foliot.domain.defaults import INHERITABLE
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import EdgeCondition, EdgeMode, JoinRule
from foliot.domain.ids import PrincipalId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.policy import Backoff, BreakerAction, MisfireRule, OnLost, OverlapRule, RetentionMode
from foliot.domain.run import Trigger
from foliot.domain.schedule import DayMatch, Gap, IntervalMode, Manual, Otherwise, OverlapTime
from foliot.web.mapping.definitions import DefinitionContext, definition_from
from foliot.wire import jobs, runs, schedules


def test_a_job_that_says_nothing_has_the_defaults_of_the_domain() -> None:
    given = jobs.JobIn.model_validate({"name": "x", "type": "other", "schedule": {"kind": "manual"}})
    owner = PrincipalId(uuid4())
    made = definition_from(given, DefinitionContext(datetime(2027, 1, 1, tzinfo=UTC), "UTC", owner))
    inherited = dict.fromkeys(INHERITABLE, "installation")
    assert made == Definition("x", Spec(Manual(), "other"), owner_id=owner, inherited=inherited)


@pytest.mark.parametrize(
    ("on_the_wire", "in_the_domain"),
    [
        (jobs.JobFields.model_fields["overlap"].annotation, OverlapRule),
        (jobs.JobFields.model_fields["misfire"].annotation, MisfireRule),
        (jobs.JobFields.model_fields["on_lost"].annotation, OnLost),
        (jobs.Retry.model_fields["strategy"].annotation, Backoff),
        (jobs.Breaker.model_fields["action"].annotation, BreakerAction),
        (jobs.Retention.model_fields["mode"].annotation, RetentionMode),
        (jobs.Window.model_fields["otherwise"].annotation, Otherwise),
        (jobs.JobFields.model_fields["depends_when"].annotation, JoinRule),
        (jobs.Dependency.model_fields["on"].annotation, EdgeCondition),
        (jobs.Dependency.model_fields["mode"].annotation, EdgeMode),
        (jobs.JobStatus, JobStatus),
        (runs.RunStatus, RunStatus),
        (runs.Trigger, Trigger),
        (schedules.DayMatch, DayMatch),
        (schedules.Gap, Gap),
        (schedules.OverlapTime, OverlapTime),
        (schedules.IntervalMode, IntervalMode),
    ],
)
def test_the_words_of_the_wire_are_those_of_the_domain(on_the_wire: Any, in_the_domain: Any) -> None:
    assert set(get_args(on_the_wire)) == {each.value for each in in_the_domain}
