"""A host on another machine, with nothing but a key, does what its servers need: through failures, kills, freezes and
restarts of the server. The witness is a file that every execution writes to before it does anything else.
"""

from __future__ import annotations

import signal

import pytest

from foliot.sdk import Invalid
from tests.fork_server import environ_without_foliot, run_foliot, start_foliot
from tests.stories.fleet import Fleet, wait_for
from tests.stories.installation import Installation
from tests.stories.server_process import STOP_WITHIN, LoggedProcess, wait_until

pytestmark = pytest.mark.usefixtures("used_data_dir")

BAD_SOON = {"kind": "cron", "expr": "0 2 * * *", "timezone": "UTC"}
# PostgreSQL itself takes no run of this job by its schedule.
BREAK = """
    CREATE OR REPLACE FUNCTION foliot.refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '22000'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON foliot.runs FOR EACH ROW
        WHEN (NEW.job_id = '{job}' AND NEW.trigger = 'schedule' AND NEW.status IS NULL) EXECUTE FUNCTION foliot.refuse()"""
SHOUT = """
from foliot.handlers.registry import succeeded
from pydantic import BaseModel


class Config(BaseModel):
    text: str
    loudness: int = 1


class Shout:
    description = "Say it loudly."
    config_shape = Config

    async def run(self, assignment):
        config = Config.model_validate(assignment.config)
        return succeeded(config.text.upper() + "!" * config.loudness)

    async def close(self):
        pass
"""


def test_a_worker_with_nothing_but_a_key_serves_the_queues_of_its_workspace(fleet: Fleet) -> None:
    fleet.open(FOLIOT_WORKER_CONCURRENCY="0")
    with fleet.client() as client:
        key = fleet.worker_key(client)
        flags = ("worker", "--server", fleet.url, "--queue", "reports", "--concurrency", "2")
        given = {"FOLIOT_API_KEY": key, "FOLIOT_LOG_FORMAT": "json"}
        worker = LoggedProcess(start_foliot(*flags, cwd=fleet.folder, env=environ_without_foliot() | given))
        try:
            worker.wait_for(r'"worker.registered"')
            fleet.open_gate()
            job = fleet.job(client, "quickly", target=None, queue="reports")
            elsewhere = fleet.job(client, "quickly", name="elsewhere", target=None)
            run, other = client.jobs.run(job.id), client.jobs.run(elsewhere.id)
            wait_for(client, run.id, "succeeded")
            assert client.runs.get(other.id).status == "ready", "nobody serves its queue"
        finally:
            worker.stop()
            worker.end()


@pytest.mark.slow
def test_a_broken_queue_costs_one_planned_time_and_a_bad_row_stops_nobody(
    fleet: Fleet, installation: Installation
) -> None:
    database = {"FOLIOT_DATABASE_URL": installation.url}
    serving = fleet.open(**database)
    beat = {"kind": "interval", "every": "1s"}
    with fleet.client() as client:
        bad = fleet.job(client, "quickly", name="bad", target=None, schedule=BAD_SOON)
    serving.stop()
    installation.execute(f"""
        UPDATE foliot.timers SET due_at = clock_timestamp(), spec = replace(spec, '0 2 * * *', '61 25 * * *')
         WHERE job_id = '{bad.id}';
        UPDATE foliot.jobs SET definition = replace(definition::text, '0 2 * * *', '61 25 * * *')::jsonb
         WHERE id = '{bad.id}'""")
    fleet.open(**database)
    fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        job = fleet.job(client, "quickly", schedule=beat, overlap="concurrent")
        wait_until(lambda: client.jobs.get(job.id).success_count >= 1, "a run, with a bad row beside its job")
        records = f"SELECT skip_reason FROM foliot.runs WHERE job_id = '{bad.id}'"
        wait_until(lambda: installation.rows(records) == [("scheduler_error",)], "the record of the bad row")
        installation.execute(BREAK.format(job=job.id))
        wait_until(lambda: client.jobs.get(job.id).skip_count, "a planned time that could not be queued")
        installation.execute("DROP TRIGGER refuse ON foliot.runs")
        after = client.jobs.get(job.id)
        [lost] = client.runs.list(job=str(job.id), skip_reason="scheduler_error").items
        assert (after.status, after.skip_count, after.failure_count) == ("active", 1, 0), "counted once"
        assert after.next_run_at is not None
        assert lost.planned_for < after.next_run_at, "the next is armed"
        assert "could not plan" in client.runs.explain(lost.id).sentence
        assert {each.name for each in client.jobs.list().items} == {"bad", "quickly"}, (
            "it is listed, and in nobody's way"
        )
        manual = client.jobs.run(job.id)
        wait_for(client, manual.id, "succeeded")


@pytest.mark.slow
def test_an_artifact_too_large_for_the_server_is_refused_on_the_host_before_it_is_sent(fleet: Fleet) -> None:
    fleet.open(FOLIOT_ARTIFACT_BYTES="1000")
    fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        job = fleet.job(client, "keeps", payload={"size": 1_000}, retry={"max": 0})
        kept = wait_for(client, client.jobs.run(job.id).id, "succeeded")
        assert [(each.name, each.size) for each in kept.artifacts] == [("players.csv", 1_000)]
        refused = wait_for(client, client.jobs.run(job.id, input={"size": 1_001}).id, "failed")
        # Raised where it was made: what the server refuses becomes artifact_refused.
        assert (refused.error.code, "the maximum is 1,000" in refused.error.message) == ("ValueError", True)
        assert refused.artifacts == []


@pytest.mark.slow
@pytest.mark.requirement("S2-12")
def test_a_type_that_is_installed_on_the_host_alone_is_checked_by_the_server_and_done_by_the_host(
    fleet: Fleet,
) -> None:
    fleet.open()
    reported = fleet.folder / "shouting-1.0.dist-info"
    reported.mkdir()
    (reported / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (reported / "entry_points.txt").write_text("[foliot.handlers]\nSHOUT = shouting:Shout\n")
    (fleet.folder / "shouting.py").write_text(SHOUT)
    host = fleet.start("--name", "h1", PYTHONPATH=str(fleet.folder))
    host.wait_for(r'"worker.registered".*"SHOUT"')
    with fleet.client() as client:
        job = {"name": "s", "type": "SHOUT", "schedule": {"kind": "manual"}, "target": {"host": "h1"}}
        with pytest.raises(Invalid) as refused:
            client.jobs.create({**job, "config": {"loudness": "very"}})
        assert {each.pointer for each in refused.value.errors} == {"/config", "/config/loudness"}
        made = client.jobs.create({**job, "config": {"text": "hello"}})
        assert made.warnings == []
        run = wait_for(client, client.jobs.run(made.id).id, "succeeded")
        assert run.output == "HELLO!"
        [seen] = [each for each in client.job_types().items if each.name == "SHOUT"]
        assert (seen.description, seen.active) == ("Say it loudly.", True)
        assert "SHOUT" in client.hosts.get(client.hosts.list().items[0].id).types


def test_a_scheduled_job_runs_on_the_host_and_says_when_the_host_is_offline(fleet: Fleet) -> None:
    fleet.open()
    host = fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        job = fleet.job(client, "quickly", schedule={"kind": "interval", "every": "1s"}, start_deadline="1s")
        wait_until(lambda: client.jobs.get(job.id).success_count >= 3, "three runs by schedule")
        host.stop()
        assert client.hosts.list().items[0].status == "offline"
        wait_until(
            lambda: client.runs.list(skip_reason="host_offline").items, "a run that was skipped for its host"
        )
        skipped = client.runs.list(skip_reason="host_offline").items[0]
        assert "Host h1 has been offline since" in (skipped.note or "")
        patient = client.jobs.run(fleet.job(client, "quickly", name="patient").id)
        reported = client.runs.explain(patient.id).sentence
        assert reported.startswith('Run 1 waits for server "pvp": host h1 has been offline since ')
        fleet.start_host("h2", "pvp")
        wait_for(client, patient.id, "succeeded")
    succeeded = fleet.executions("done")
    assert len(succeeded) == len(set(succeeded)), "two executions under one fence"


@pytest.mark.slow
def test_a_run_whose_host_is_killed_is_lost_and_repeated_when_the_host_is_back(fleet: Fleet) -> None:
    fleet.open()
    host = fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        run = client.jobs.run(fleet.job(client, "gated").id)
        wait_until(lambda: fleet.executions("began"), "the first attempt")
        host.process.kill()
        host.process.wait()
        fleet.start_host("h1", "pvp")
        wait_until(lambda: len(fleet.executions("began")) == 2, "the second attempt")
        fleet.open_gate()
        wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["lost", "succeeded"]
    assert fleet.executions("began") == [(str(run.id), 1, 1), (str(run.id), 2, 2)]


@pytest.mark.slow
def test_the_result_of_a_host_frozen_past_its_lease_is_refused(fleet: Fleet) -> None:
    serving = fleet.open()
    host = fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        run = client.jobs.run(fleet.job(client, "gated").id)
        wait_until(lambda: fleet.executions("began"), "the first attempt")
        host.process.send_signal(signal.SIGSTOP)
        fleet.open_gate()
        wait_until(lambda: fleet.executions("ended"), "the work of the frozen host")
        serving.wait_for(r'"run.swept".*"as": "Lost"')
        host.process.send_signal(signal.SIGCONT)
        serving.wait_for(r'"report.refused".*"fence": 1')
        wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["lost", "succeeded"]
        [refused] = client.audit(action="report.refused").items
        assert refused.object.id == str(run.id)
    assert [fence for _, _, fence in fleet.executions("ended")] == [1, 2]


@pytest.mark.slow
def test_a_server_restarted_in_the_middle_of_a_run_takes_its_result_afterwards(fleet: Fleet) -> None:
    serving = fleet.open(FOLIOT_WORKER_LEASE="60")
    host = fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        run = client.jobs.run(fleet.job(client, "gated").id)
        wait_until(lambda: fleet.executions("began"), "the attempt")
    serving.stop()
    fleet.open_gate()
    wait_until(lambda: fleet.executions("ended"), "the work, while nobody listens")
    fleet.open(FOLIOT_WORKER_LEASE="60")
    with fleet.client() as client:
        done = wait_for(client, run.id, "succeeded")
        assert (done.attempt_count, fleet.executions("ended")) == (1, [(str(run.id), 1, 1)])
        again = client.jobs.run(fleet.job(client, "quickly").id)
        wait_for(client, again.id, "succeeded")
    assert host.process.poll() is None


@pytest.mark.slow
def test_a_host_that_is_asked_to_stop_hands_back_what_it_cannot_finish(fleet: Fleet) -> None:
    fleet.open()
    host = fleet.start_host("h1", "pvp")
    with fleet.client() as client:
        run = client.jobs.run(fleet.job(client, "gated").id)
        wait_until(lambda: fleet.executions("began"), "the attempt")
        assert host.stop() < STOP_WITHIN
        assert client.runs.get(run.id).status == "ready"
        assert "offline since" in client.runs.explain(run.id).sentence
        fleet.open_gate()
        fleet.start_host("h1", "pvp")
        done = wait_for(client, run.id, "succeeded")
        assert [each.status for each in client.runs.attempts(run.id).items] == ["cancelled", "succeeded"]
        assert done.error is None


@pytest.mark.slow
def test_a_host_with_a_key_that_is_not_for_workers_is_refused_with_the_reason(fleet: Fleet) -> None:
    fleet.open()
    admin = (fleet.data_dir / "admin.key").read_text().strip()
    done = run_foliot("host", "--server", fleet.url, "--key", admin, cwd=fleet.folder)
    assert done.returncode == 5, done.stderr
    assert "keys of the scope worker" in done.stderr
    assert admin not in done.stderr
