"""What a plan owes to people."""

from __future__ import annotations

from foliot.domain.notice import notices_of
from foliot.domain.planning.plan import plan, plan_resume
from foliot.domain.policy import Misfire, MisfireRule
from foliot.domain.schedule import Cron
from tests.domain.given import a_job, at, due, every

MISSING = Misfire(MisfireRule.SKIP)


def test_a_run_on_time_owes_nothing() -> None:
    assert notices_of(plan(due(a_job(), at("07:55")), at("08:00"))) == ()


def test_missed_times_are_one_notice_with_their_number() -> None:
    hourly = a_job(Cron("0 * * * *"), misfire=MISSING)
    assert [n.text for n in notices_of(plan(due(hourly, at("00:00")), at("07:30")))] == [
        "7 planned times were missed."
    ]
    assert [n.text for n in notices_of(plan(due(hourly, at("06:00")), at("07:30")))] == [
        "A planned time was missed."
    ]
    seconds = a_job(every(1), misfire=MISSING)
    many = notices_of(plan(due(seconds, at("00:00")), at("23:00")))
    assert many[0].text == "More than 10,000 planned times were missed."


def test_a_skip_says_its_reason() -> None:
    paused = plan_resume(due(a_job(), at("07:00")), at("08:00"))
    assert [(n.kind.value, n.text) for n in notices_of(paused)] == [("run_skipped", "Skipped: paused.")]
