"""The operator's maximum for timeouts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from foliot.domain.definition import Definition, Spec
from foliot.domain.errors import QuotaExceeded
from foliot.domain.policy import Limits
from foliot.domain.quotas import Quotas, check_definition
from foliot.domain.schedule import Interval


def test_a_job_has_no_longer_timeout_than_the_operator_allows() -> None:
    quotas, now = Quotas(max_timeout=600), datetime(2027, 1, 1, tzinfo=UTC)
    spec = Spec(Interval(timedelta(hours=1)), "http", limits=Limits(timeout=timedelta(minutes=10)))
    long = Definition("long", replace(spec, limits=Limits(timeout=timedelta(minutes=10, seconds=1))))
    check_definition(quotas, Definition("short", spec), now)
    with pytest.raises(QuotaExceeded) as refused:
        check_definition(quotas, long, now)
    assert (refused.value.pointer, refused.value.quota, refused.value.used) == (
        "/timeout",
        "max_timeout",
        601,
    )
    check_definition(quotas, replace(long, name="an older job under a new name"), now, long)
