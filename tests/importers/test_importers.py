"""Files of other schedulers become jobs: nothing is dropped in silence, and one bad record stops no other."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.importers.airflow import read_airflow
from foliot.importers.apscheduler import read_apscheduler
from foliot.importers.celery_beat import read_celery_beat
from foliot.importers.crontab import read_crontab
from foliot.importers.job_rows import RowMapping, read_rows
from foliot.importers.kubernetes import read_kubernetes
from foliot.importers.openclaw import OpenClawMapping, read_openclaw
from foliot.importers.records import BadRecordError, ImportedJob, ImportedRecords
from foliot.importers.systemd import read_systemd

FILES = Path(__file__).parent / "files"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def by_key(records: ImportedRecords) -> dict[str, ImportedJob]:
    return {job.key: job for job in records.jobs}


def all_warnings(job: ImportedJob) -> str:
    return " ".join(job.warnings)


@pytest.mark.requirement("S4-29", "S4-30", "S4-31")
def test_the_present_file_of_openclaw_becomes_four_disabled_jobs() -> None:
    channels = {"slack:channel:C0GREEN": "garden"}
    mapping = OpenClawMapping(agents={"fern": "fern"}, channels=channels, default_agent="main")
    records = read_openclaw((FILES / "openclaw-current.json").read_text(), mapping, NOW)
    jobs = by_key(records)
    assert records.rejected == ()
    assert len(jobs) == 4
    assert {job.body["enabled"] for job in jobs.values()} == {False}
    morning = jobs["5d0c2f1e-greenhouse-am"]
    assert morning.body["schedule"] == {"kind": "cron", "expr": "15 6 * * 1-5", "timezone": "Europe/Lisbon"}
    assert morning.body["config"] == {
        "text": "Read last night's humidity log and list beds below 55%.",
        "new_room": True,
    }
    assert (morning.body["timeout"], morning.body["owner"]) == ("240s", "fern")
    assert morning.warnings == ()
    assert morning.body["external_ref"]["failure_alert"] == {"after": 2, "cooldownMs": 3600000}
    once = jobs["a91b-seed-order"]
    assert once.body["schedule"] == {"kind": "once", "at": "2031-03-02T09:30:00+00:00"}
    assert once.body["config"]["kind"] == "system_event"
    pulse = jobs["c7-pump-pulse"]
    assert pulse.body["schedule"]["every"] == "600s"
    assert pulse.body["schedule"]["anchor"] == "2026-01-09T23:06:40+00:00"
    assert "session:irrigation" in all_warnings(pulse)
    copy = jobs["e4-backup"]
    assert copy.body["type"] == "command"
    assert copy.body["schedule"]["spread"] == "120s"
    assert "no zone" in all_warnings(copy)
    assert "allow commands" in all_warnings(copy)
    no_agent = [job.key for job in records.jobs if "default agent" in all_warnings(job)]
    assert sorted(no_agent) == ["a91b-seed-order", "c7-pump-pulse", "e4-backup"]
    original = json.loads((FILES / "openclaw-current.json").read_text())["jobs"]
    assert [job.body["external_ref"]["raw"] for job in records.jobs] == original


@pytest.mark.requirement("S4-29", "S4-31")
def test_old_and_damaged_shapes_are_read_or_named() -> None:
    records = read_openclaw((FILES / "openclaw-legacy.json").read_text(), OpenClawMapping(), NOW)
    jobs = by_key(records)
    # The cron of bad-6 is wrong only for the server, which names it when the job is created.
    assert sorted(jobs) == ["42", "bad-6", "old-1", "old-3", "old-4", "old-5"]
    assert [(each.key, each.reason) for each in records.rejected] == [("bad-7", "The record has no payload.")]
    assert jobs["old-1"].body["schedule"]["expr"] == "*/20 * * * *"
    assert "old form" in all_warnings(jobs["old-1"])
    assert jobs["42"].body["name"] == "Write the weekly note."
    assert "has passed" in all_warnings(jobs["old-3"])
    assert jobs["old-4"].body["schedule"]["seconds"]
    assert "old form" in all_warnings(jobs["old-4"])
    assert jobs["old-5"].body["schedule"] == {"kind": "manual"}
    assert "on-exit" in all_warnings(jobs["old-5"])


def test_a_record_without_an_id_keeps_its_key() -> None:
    text = json.dumps([{"schedule": "0 8 * * *", "message": "Hello."}])
    [first] = read_openclaw(text, OpenClawMapping(), NOW).jobs
    [again] = read_openclaw(text, OpenClawMapping(), NOW).jobs
    assert first.key == again.key
    assert first.digest == again.digest


@pytest.mark.parametrize("text", ["", "[", "{}", '{"jobs": 3}', '"a"'])
def test_a_file_that_is_not_of_openclaw_is_refused(text: str) -> None:
    with pytest.raises(BadRecordError):
        read_openclaw(text, OpenClawMapping(), NOW)


@pytest.mark.parametrize(
    "record",
    [
        3, None, {}, {"schedule": {}}, {"schedule": {"kind": "every", "everyMs": "x"}, "text": "a"},
        {"schedule": {"kind": "at", "at": "soon"}, "text": "a"}, {"schedule": {"kind": "at"}, "text": "a"},
        {"schedule": {"kind": "at", "atMs": 1e30}, "text": "a"}, {"schedule": "* * * * *", "payload": {"kind": "command"}},
        {"schedule": "* * * * *", "payload": {"kind": "agentTurn", "message": "a", "timeoutSeconds": "x"}},
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_named_and_stops_nothing(record: Any) -> None:
    good = {"id": "good", "schedule": "0 8 * * *", "text": "Hello."}
    records = read_openclaw(json.dumps([record, good]), OpenClawMapping(), NOW)
    assert [job.key for job in records.jobs] == ["good"]
    assert [each.index for each in records.rejected] == [1]
    assert records.rejected[0].reason


def test_a_system_crontab_keeps_users_zones_input_and_variables() -> None:
    records = read_crontab((FILES / "system-crontab").read_text(), system=True)
    hourly, daily, weekly, reboot = records.jobs
    path = "PATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin; export PATH; "
    assert hourly.body["schedule"] == {"kind": "cron", "expr": "17 * * * *"}
    assert hourly.body["config"]["argv"] == [
        "/bin/sh", "-c", path + "cd / && run-parts --report /etc/cron.hourly",
    ]  # fmt: skip
    assert "UTC is assumed" in all_warnings(hourly)
    assert "ops@example.test" in all_warnings(hourly)
    assert "anacron" in daily.name
    assert weekly.body["schedule"] == {"kind": "cron", "expr": "0 4 1-7 * sun", "timezone": "Europe/Madrid"}
    assert weekly.body["config"]["argv"][2].endswith(
        "tar czf /backup/$(date +%F).tgz /srv <<'END_OF_INPUT'\none\ntwo\nEND_OF_INPUT"
    )
    assert "user backup" in all_warnings(weekly)
    assert reboot.body["schedule"] == {"kind": "manual"}
    assert [each.reason for each in records.rejected] == [
        "@fortnightly is not a schedule of cron.",
        "Line 12: there is no command after the schedule.",
    ]


@pytest.mark.parametrize("file", sorted(Path("/etc/cron.d").glob("[a-z]*")), ids=lambda file: file.name)
def test_the_crontabs_of_this_machines_packages_are_read_whole(file: Path) -> None:
    text = file.read_text()
    records = read_crontab(text, system=True, time_zone="UTC")
    assert records.rejected == ()
    kept = [job.body["external_ref"]["raw"]["text"] for job in records.jobs]
    assert kept == [line.strip() for line in text.splitlines() if line.strip()[:1] in set("*@0123456789")]


def test_a_users_crontab_has_no_user_and_takes_the_zone_of_its_host() -> None:
    records = read_crontab(
        "*/5 * * * * /bin/poll --fast\n0 9-17/2 * * 1-5 x\n", system=False, time_zone="Asia/Tokyo"
    )
    assert [job.body["schedule"]["expr"] for job in records.jobs] == ["*/5 * * * *", "0 9-17/2 * * 1-5"]
    assert {job.body["schedule"]["timezone"] for job in records.jobs} == {"Asia/Tokyo"}
    assert records.jobs[0].body["config"]["argv"] == ["/bin/sh", "-c", "/bin/poll --fast"]


def test_cronjobs_of_kubernetes_come_from_lists_and_several_documents() -> None:
    records = read_kubernetes((FILES / "cronjobs.yaml").read_text())
    [report] = records.jobs
    assert (report.key, report.name) == ("shop/report", "report")
    assert report.body["schedule"] == {"kind": "cron", "expr": "30 2 * * 1-5", "timezone": "Europe/Paris"}
    assert report.body["config"] == {"argv": ["/app/report", "--daily"], "env": {"REGION": "eu"}}
    assert (report.body["overlap"], report.body["grace"], report.body["timeout"]) == ("skip", "300s", "600s")
    assert report.body["retry"]["max"] == 2
    assert report.body["external_ref"]["was_suspended"]
    assert "secrets" in all_warnings(report)
    assert [(each.key, each.reason) for each in records.rejected] == [
        ("default/empty", "The CronJob has no container.")
    ]


def test_beat_schedules_become_celery_jobs() -> None:
    records = read_celery_beat((FILES / "beat.json").read_text(), time_zone="Europe/Madrid")
    jobs = by_key(records)
    assert jobs["clean"].body["schedule"] == {"kind": "interval", "every": "300s"}
    assert jobs["clean"].body["config"] == {"task": "shop.clean", "queue": "low"}
    assert jobs["clean"].body["start_deadline"] == "60s"
    assert "headers" in all_warnings(jobs["clean"])
    assert jobs["charge"].body["schedule"]["expr"] == "0 6 * * mon-fri"
    assert jobs["charge"].body["payload"] == {"currency": "EUR"}
    assert [(each.key, each.reason) for each in records.rejected] == [("lost", "The entry names no task.")]


def test_rows_of_django_celery_beat_are_joined() -> None:
    rows = [
        {"model": "django_celery_beat.intervalschedule", "pk": 1, "fields": {"every": 10, "period": "minutes"}},
        {"model": "django_celery_beat.crontabschedule", "pk": 4, "fields": {
            "minute": "0", "hour": "*/2", "day_of_month": "*", "month_of_year": "*", "day_of_week": "*", "timezone": "Asia/Tokyo"}},
        {"model": "django_celery_beat.periodictask", "pk": 7, "fields": {
            "name": "poll", "task": "shop.poll", "interval": 1, "crontab": None, "args": "[1]", "kwargs": '{"a": 2}', "enabled": True}},
        {"model": "django_celery_beat.periodictask", "pk": 8, "fields": {
            "name": "sync", "task": "shop.sync", "crontab": 4, "one_off": True, "queue": "low"}},
        {"model": "django_celery_beat.periodictask", "pk": 9, "fields": {"name": "gone", "task": "x", "interval": 5}},
        {"model": "auth.user", "pk": 1, "fields": {}},
    ]  # fmt: skip
    records = read_celery_beat(json.dumps(rows))
    jobs = by_key(records)
    assert jobs["7"].body["schedule"] == {"kind": "interval", "every": "600s"}
    assert jobs["7"].body["payload"] == {"a": 2}
    assert "positional" in all_warnings(jobs["7"])
    assert (jobs["8"].body["schedule"]["timezone"], jobs["8"].body["max_runs"]) == ("Asia/Tokyo", 1)
    assert [each.key for each in records.rejected] == ["9"]


def test_tables_of_django_celery_beat_are_read_as_its_own_dumpdata_writes_them() -> None:
    """`files/django-celery-beat.json` was written by `manage.py dumpdata` on tables that the migrations of version 2.9 made."""
    records = read_celery_beat((FILES / "django-celery-beat.json").read_text())
    jobs = {job.name: job.body for job in records.jobs}
    assert jobs["poll"]["schedule"] == {"kind": "interval", "every": "600s"}
    assert (jobs["poll"]["payload"], jobs["poll"]["description"]) == ({"region": "eu"}, "Ask the shop.")
    assert jobs["sync"]["schedule"] == {
        "kind": "cron", "expr": "0 */2 * * 1-5", "timezone": "Asia/Tokyo", "day_match": "and",
    }  # fmt: skip
    assert (jobs["sync"]["config"]["queue"], jobs["sync"]["external_ref"]["was_enabled"]) == ("low", False)
    assert jobs["close"]["schedule"] == {"kind": "once", "at": "2031-03-02T09:30:00Z"}
    assert sorted(each.reason for each in records.rejected) == [
        "A schedule by the sun has no counterpart.",
        "An interval in microseconds is too short.",
    ]
    assert len(records.jobs) + len(records.rejected) == 5


def test_timers_of_systemd_find_their_services() -> None:
    records = read_systemd((FILES / "timers.txt").read_text(), "timers.txt")
    jobs = by_key(records)
    daily = jobs["apt-daily.timer"]
    assert daily.body["schedule"] == {
        "kind": "cron",
        "expr": "0 6,18 * * *",
        "day_match": "and",
        "spread": "43200s",
    }
    assert daily.body["config"] == {"argv": ["/usr/lib/apt/apt.systemd.daily", "update"]}
    assert daily.body["misfire"] == "latest"
    assert jobs["poll.timer"].body["schedule"] == {"kind": "interval", "every": "90s", "mode": "fixed_rate"}
    assert jobs["poll.timer"].body["config"]["argv"] == ["systemctl", "start", "poll.service"]
    assert jobs["weekdays.timer"].body["schedule"] == {
        "kind": "cron", "expr": "30 9 * * 1-5", "day_match": "and", "timezone": "Europe/Madrid",
    }  # fmt: skip
    assert [each.key for each in records.rejected] == ["odd.timer"]


def test_jobs_of_apscheduler_are_read_from_the_text_of_their_triggers() -> None:
    """`files/apscheduler.json` was printed by the lines in docs/how-to/import.md with APScheduler 3.11."""
    records = read_apscheduler((FILES / "apscheduler.json").read_text())
    jobs = by_key(records)
    schedules = {key: job.body["schedule"] for key, job in jobs.items()}
    paris = {"timezone": "Europe/Paris", "kind": "cron", "day_match": "and"}
    assert schedules == {
        "weekdays": {**paris, "expr": "0 9 * * mon-fri"},
        "monthly": {**paris, "expr": "30 2 L * *"},
        "second-friday": {**paris, "expr": "0 8 * * 5#2"},
        "by-number": {**paris, "expr": "15 */2 * * sun,mon"},
        "fast": {**paris, "expr": "*/10 * * * * *", "seconds": True},
        "yearly": {**paris, "expr": "0 0 1 3 *"},
        "often": {"kind": "interval", "every": "300s", "spread": "5s"},
        "long": {"kind": "interval", "every": "90000s"},
        "once": {"kind": "once", "at": "2030-01-01T10:00:00+01:00", "timezone": "Europe/Paris"},
    }
    assert {each.key: each.reason for each in records.rejected}.keys() == {"either", "weeks"}
    assert jobs["often"].body["external_ref"]["was_enabled"] is False
    assert jobs["often"].body["payload"] == {"indent": 2}
    assert "positional" in all_warnings(jobs["often"])
    assert jobs["long"].body["overlap"] == "concurrent"
    assert jobs["long"].body["misfire"] == "all"


def test_an_export_with_pickles_is_refused() -> None:
    exported = {
        "version": 1,
        "jobs": [{"id": "a", "func": "os:getpid", "trigger": {"__apscheduler_pickle__": "gAWV"}}],
    }
    [rejected] = read_apscheduler(json.dumps(exported)).rejected
    assert "str(job.trigger)" in rejected.reason


def test_dags_of_airflow_become_jobs_that_trigger_them() -> None:
    dags = [
        {"dag_id": "daily", "timetable_summary": "@daily", "is_paused": "True", "timezone": "Europe/Berlin"},
        {
            "dag_id": "typed",
            "schedule_interval": {"__type": "CronExpression", "value": "5 4 * * *"},
            "catchup": True,
        },
        {"dag_id": "span", "schedule_interval": {"__type": "TimeDelta", "days": 1, "seconds": 60}},
        {"dag_id": "text-span", "timetable_summary": "1 day, 0:00:00"},
        {"dag_id": "by-asset", "timetable_summary": "Asset"},
        {"dag_id": "by-hand", "timetable_summary": None},
        {"dag_id": "odd", "timetable_summary": "AfterWorkdayTimetable"},
        {"dag_id": "listed-without"},
        {"fileloc": "x.py"},
    ]
    records = read_airflow(json.dumps({"dags": dags, "total_entries": 9}))
    jobs = by_key(records)
    assert {key: job.body["schedule"] for key, job in jobs.items()} == {
        "daily": {"kind": "cron", "expr": "0 0 * * *", "timezone": "Europe/Berlin"},
        "typed": {"kind": "cron", "expr": "5 4 * * *"},
        "span": {"kind": "interval", "every": "86460s"},
        "text-span": {"kind": "interval", "every": "86400s"},
        "by-asset": {"kind": "manual"},
        "by-hand": {"kind": "manual"},
    }
    assert jobs["daily"].body["config"] == {"argv": ["airflow", "dags", "trigger", "daily"]}
    assert jobs["daily"].body["external_ref"]["was_enabled"] is False
    assert jobs["typed"].body["misfire"] == "all"
    assert [each.key for each in records.rejected] == ["odd", "listed-without", None]
    assert "--columns" in records.rejected[1].reason


ROWS = [
    {"id": "s0", "orgId": "o", "name": "restart", "cronExpression": "0 2 * * *", "jobType": "python", "payload": {"force": True},
     "serverInstanceId": "srv-1", "enabled": True, "executionWindowStart": "02:00", "executionWindowEnd": "06:00",
     "retryPolicy": {"maxRetries": 2, "backoffMs": 1000, "backoffType": "exponential"}},
    {"id": "s1", "workspace_id": "w", "name": "sync", "job_type": "DATA_SYNC", "schedule": "30 6 * * *", "timezone": "UTC", "enabled": False,
     "configuration": {"source": "meta"}, "notify_on_failure": {"email": True, "slack": True}, "notify_recipients": ["ops@example.test"],
     "depends_on_job_id": "s9", "dependency_delay_minutes": 30},
    {"ID": "s2", "Name": "vectors", "JobTypeID": "Action", "CronExpression": "*/5 * * * *", "Timezone": "Europe/Paris", "Status": "Paused",
     "Configuration": '{"ActionName": "vectorize", "Parameters": [{"Name": "a", "Value": 1}]}', "ConcurrencyMode": "Queue", "EndAt": "2031-01-01T00:00:00Z"},
    {"id": "s3", "name": "report", "interval_seconds": 86400, "total_repeats": 3, "current_repeat": 1, "max_retries": 3, "timeout_seconds": 600,
     "trigger_payload": {"kind": "daily"}, "workflow_id": 1, "trigger_node_id": "t", "status": "active"},
    {"id": "s4", "name": "check", "agent_id": "frank", "schedule_kind": "interval", "interval_ms": 30000, "payload_kind": "system_event",
     "payload_text": "Look.", "room_id": "r1", "max_failures": 3, "enabled": True},
    {"id": "bad", "name": "nothing"},
]  # fmt: skip


def test_rows_of_the_five_systems_are_known_by_their_columns() -> None:
    records = read_rows(json.dumps({"rows": ROWS}), RowMapping({"frank": "frank"}, {"r1": "ops"}, zone="UTC"))
    bodies = {job.key: job.body for job in records.jobs}
    assert {body["enabled"] for body in bodies.values()} == {False}
    restart = bodies["s0"]
    assert restart["schedule"] == {"kind": "cron", "expr": "0 2 * * *", "timezone": "UTC"}
    assert (restart["window"]["start"], restart["window"]["end"]) == ("02:00", "06:00")
    assert restart["retry"] == {"max": 2, "strategy": "exponential", "base": "1s"}
    assert (restart["type"], restart["payload"]) == ("python", {"force": True})
    assert bodies["s1"]["notify"] == {
        "email": True, "slack": True, "whatsapp": False, "recipients": ["ops@example.test"],
    }  # fmt: skip
    assert (bodies["s1"]["type"], bodies["s1"]["external_ref"]["was_enabled"]) == ("DATA_SYNC", False)
    vectors = bodies["s2"]
    assert vectors["config"] == {"action": "vectorize", "parameters": [{"Name": "a", "Value": 1}]}
    assert (vectors["type"], vectors["overlap"], vectors["end_at"]) == (
        "action",
        "queue",
        "2031-01-01T00:00:00Z",
    )
    assert vectors["external_ref"]["was_status"] == "Paused"
    report = bodies["s3"]
    assert (report["type"], report["max_runs"], report["breaker"]) == (
        "event",
        2,
        {"after": 1, "action": "fail"},
    )
    assert report["config"] == {"event": "schedule", "workflow_id": 1, "trigger_node_id": "t"}
    check = bodies["s4"]
    assert check["config"] == {"text": "Look.", "kind": "system_event", "room": "ops"}
    assert (check["owner"], check["breaker"]["after"], check["schedule"]["every"]) == ("frank", 3, "30s")
    warned = {job.key: all_warnings(job) for job in records.jobs}
    assert "srv-1" in warned["s0"]
    assert "30 minutes after the job s9" in warned["s1"]
    assert warned["s4"] == ""
    assert [(each.key, each.reason) for each in records.rejected] == [
        ("bad", "The columns are of none of the known systems: there is no schedule in them.")
    ]
    assert [job.body["external_ref"]["raw"] for job in records.jobs] == ROWS[:5]


def test_rows_come_as_csv_too() -> None:
    text = (
        "id,name,job_type,schedule,timezone,enabled,configuration,notify_recipients\n"
        '7,sync,DATA_SYNC,"30 6 * * *",,t,"{""source"": ""meta""}",\n8,,DATA_SYNC,0 7 * * *,UTC,f,,\n'
    )
    records = read_rows(text, RowMapping(zone="America/Bogota"))
    [job] = records.jobs
    assert (job.key, job.body["config"], job.body["schedule"]["timezone"]) == (
        "7",
        {"source": "meta"},
        "America/Bogota",
    )
    assert [(each.key, each.reason) for each in records.rejected] == [("8", "The row has no name.")]
    with pytest.raises(BadRecordError):
        read_rows("")
