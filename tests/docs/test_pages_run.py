"""The commands, requests and Python of the how-to pages are executed, one page after the other, against one server."""

from __future__ import annotations

import os
import re
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Sink

from foliot import Client
from tests.fork_server import environ_without_foliot, write_program
from tests.stories.server_process import ServerProcess, wait_until
from tests.temporary import temporary_folder

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of these pages alone
OPENCLAW = Path(__file__).resolve().parents[1] / "importers" / "files" / "openclaw-current.json"
PAGES = sorted(path.name for path in HOW_TO.glob("*.md"))
QUICK = {"edit.md", "pause.md", "schedules.md", "skip.md"}  # the others run in `./dev prove slow`
WITHIN = 60  # seconds, for one statement
# What cannot run here, and why. The pattern is searched in the statement.
NOT_RUN = {
    r"foliot (serve|worker|host)\b": "starts a process that lasts: tests/stories",
    r"^(export|pip|celery|rq|pass) ": "another program, or the operator's own environment",
    r"runs logs RUN": "names a run that only the reader has",
    r"--profile|FOLIOT_PROFILE|--url https": "names a server that is not here: tests/cli/test_formats.py",
    r"db restore|db release": "needs a stopped server: tests/stories/test_dump_and_restore.py",
    r'"type": "(celery|rq|bullmq)"': "needs Redis: tests/stories/test_bridges.py",
    r"foliot jobs edit report$": "opens an editor: needs a terminal",
    r"foliot migrate": "needs the operator's own PostgreSQL: tests/stories",
}
ENDLESS = r"--follow|--watch|rooms follow|curl .*-N "  # runs until it has written something
ENDLESS_PYTHON = r"\.follow\(|\.events\(|follow_logs\("
ARTIFACTS = """
def report(ctx):
    ctx.artifact("sales.csv", "day,sales")
"""
BLOCK = re.compile(r"^```(sh|python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Place:
    folder: Path
    url: str
    environ: dict[str, str]
    client: Client


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with temporary_folder() as folder:
        (folder / "artifact_jobs.py").write_text(ARTIFACTS)
        mail = Controller(Sink(), hostname="127.0.0.1", port=free_port())
        mail.start()
        serving = ServerProcess(
            folder / ".foliot",
            FOLIOT_ALLOW_COMMANDS="yes",
            FOLIOT_SMTP_URL=f"smtp+plain://127.0.0.1:{mail.port}",
            FOLIOT_SMTP_FROM="foliot@example.com",
        )
        try:
            url = serving.wait_for_url()
            write_program(folder)
            key = (folder / ".foliot" / "admin.key").read_text().strip()
            path = os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))
            environ = environ_without_foliot() | {
                "PATH": path,
                "FOLIOT_API_URL": url,
                "FOLIOT_DATA_DIR": str(folder / ".foliot"),
                "EDITOR": "true",
                "key": key,
                "api": f"{url}/api/v1",
            }
            with Client(url, key) as client:
                register_hosts(client, url)
                yield Place(folder, url, environ, client)
        finally:
            serving.end()
            mail.stop()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def register_hosts(client: Client, url: str) -> None:
    """Register the hosts that pages name, with the job type of the page about job types."""
    member = client.members.create("hosts of the pages", kind="service", role="viewer")
    worker = client.keys.create("hosts of the pages", principal=member.id, scopes=["worker"]).secret
    kind = {"name": "DATA_SYNC", "description": "Copy tables.", "config_schema": {"type": "object"}}
    for name, instances in (("h1", ["pvp", "pve"]), ("h2", [])):
        hello: dict[str, Any] = {"name": name, "types": ["http", "command", "DATA_SYNC"], "capacity": 1}
        answer = httpx2.post(
            f"{url}/api/v1/worker/register",
            json={**hello, "described": [kind], "host": {"name": name, "instances": instances}},
            headers={"Authorization": f"Bearer {worker}"},
        )
        answer.raise_for_status()


def prepare(place: Place, page: str) -> dict[str, str]:
    """Remove the jobs of the page before, and make the things that pages speak of. Return them as variables."""
    client, text = place.client, (HOW_TO / page).read_text()
    for job in list(client.jobs.each()):
        client.jobs.delete(job.id, detach=True)
    for freeze in client.freezes.list().items:
        client.freezes.lift(freeze.id)
    delete_channels(client)
    for room in client.rooms.each():
        client.rooms.delete(room.id)
    for calendar in client.calendars.each():
        client.calendars.delete(calendar.id, force=True)
    config = {"url": f"{place.url}/healthz", "method": "GET"}

    def create(name: str, *tags: str) -> str:
        job = client.jobs.create(
            name=name, type="http", config=config, schedule="every day at 9am", tags=list(tags)
        )
        return str(job.id)

    report = create("report")
    if "create --name sync" not in text and "create sync" not in text:
        create("sync")
    create("morning mail")
    if page == "many.md":
        for number in range(12):
            create(f"billing {number}", "billing")
        for number in range(3):
            create(f"old {number}", "old")
    (place.folder / "my-crontab").write_text("30 5 * * 1-5 /usr/local/bin/report --quiet\n")
    if page == "import.md":
        if not any(each.name == "assistant" for each in client.members.each()):  # a page before may add it
            client.members.create("assistant", kind="agent", role="editor")
        client.rooms.create("Garden", key="garden")
        shutil.copy(OPENCLAW, place.folder / "jobs.json")
        (place.folder / "runs.jsonl").write_text(
            '{"ts": 1769062518642, "jobId": "5d0c2f1e-greenhouse-am", "action": "finished", "status": "ok"}\n'
        )
    if page == "artifacts.md":
        client.jobs.delete(report)
        storing = {"type": "python", "config": {"call": "artifact_jobs:report"}}
        report = str(client.jobs.create({"name": "report", "schedule": {"kind": "manual"}, **storing}).id)
        client.runs.wait(client.jobs.run(report).id)
    run = client.jobs.run(report)
    if page == "notification-rules.md":
        client.channels.create({"name": "ops", "config": {"kind": "email", "to": ["ops@example.com"]}})
    fails = {"type": "http", "config": {**config, "success": [500]}, "retry": {"max": 0}}
    failing = client.jobs.create({"name": "failing", "schedule": {"kind": "manual"}, **fails})
    agents = [each for each in client.members.each() if each.name == "the pages"]
    agent = agents[0] if agents else client.members.create("the pages", kind="agent", role="editor")
    if not any(each.name == "ada" for each in client.members.each()):
        client.members.create("ada", kind="user", role="editor")
    secret = client.keys.create("of the page", principal=agent.id)
    rule = {"kind": "weekly", "start": "00:00", "end": "00:00", "days": ["sun"]}
    sundays = client.calendars.create({"name": "sundays", "kind": "blackout", "rules": [rule]})
    key = "standup" if page == "webhooks.md" else "of-the-pages"
    made = client.rooms.create("Of the pages", key=key, agents=[agent.id])
    for name in ("crm-token", "standup-hook", "billing-token", "billing-signature"):
        client.secrets.set(name, WEBHOOK_SECRET)
    webhook_url = ""
    if page == "incoming-webhooks.md":
        signed = {"kind": "trigger", "job_id": report, "secret": {"secret": "standup-hook"}}
        webhook_url = str(client.webhooks.create({"name": "of the page", **signed}).url)
    (place.folder / "input.json").write_text('{"month": "2035-01"}')
    (place.folder / "notes.txt").write_text("notes")
    return {
        "job_id": report,
        "run_id": str(run.id),
        "member_id": str(agent.id),
        "agent_id": str(agent.id),
        "agent_key": secret.secret,
        "key_id": str(secret.id),
        "calendar_id": str(sundays.id),
        "room_id": str(made.id),
        "last": "",
        "failing": str(failing.id),
        "healthz": str(config["url"]),
        "url": webhook_url,
        "secret": WEBHOOK_SECRET,
    }


def statements(block: str) -> Iterator[str]:
    """Yield the statements of a block of shell: lines, or several where a quote stays open."""
    waiting = ""
    for line in block.splitlines():
        waiting = f"{waiting}\n{line}" if waiting else line
        try:
            words = shlex.split(waiting, comments=True)
        except ValueError:
            continue
        if words:
            yield waiting
        waiting = ""
    assert not waiting, "a quote stays open"


def reason_not_to_run(statement: str) -> str | None:
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, statement)), None)


@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("curl") is None, reason="the pages use curl")
@pytest.mark.parametrize(
    "page", [page if page in QUICK else pytest.param(page, marks=pytest.mark.slow) for page in PAGES]
)
def test_everything_on_the_page_runs(place: Place, page: str) -> None:
    variables = prepare(place, page)
    text = (HOW_TO / page).read_text()
    failed: list[str] = []
    files = iter(re.findall(r"(?:-f|--map) (\S+\.yaml)", text))
    for language, block in BLOCK.findall(text):
        if language == "yaml":
            (place.folder / next(files, "unnamed.yaml")).write_text(block)
        elif language == "python":
            failed += run_python(place, block, variables)
        else:
            for each in statements(block):
                if reason_not_to_run(each) is None:
                    complete_variables(place.client, each, variables)
                    failed += run_shell(place, each, variables)
    assert not failed, "\n\n".join(failed)


def complete_variables(client: Client, statement: str, variables: dict[str, str]) -> None:
    """Make what a statement names by an id that an earlier answer would have shown."""
    if "$freeze_id" in statement:
        variables["freeze_id"] = str(client.freezes.list().items[0].id)
    if "$api/channels --json" in statement:
        delete_channels(client)  # the command before has made it already
    if "$channel_id" in statement:
        variables["channel_id"] = str(client.channels.list().items[0].id)
    if "runs retry" in statement:
        sync = client.jobs.find("sync")
        client.jobs.patch(sync.id, {"config": {"url": variables["healthz"], "method": "GET"}})
        client.runs.wait(client.jobs.run(sync.id).id)
    if "01a1df48" in statement and "incident" not in variables:
        client.jobs.run(variables["failing"])
        wait_until(lambda: open_incidents(client), "an incident")
        variables["incident"] = open_incidents(client)[0]


def open_incidents(client: Client) -> list[str]:
    return [str(each.id) for each in client.incidents.list().items if each.closed_at is None]


def delete_channels(client: Client) -> None:
    for channel in client.channels.list().items:
        client.channels.delete(channel.id)


def run_shell(place: Place, statement: str, variables: dict[str, str]) -> list[str]:
    """Numbers of runs such as #12 become #1: the jobs of the pages are new here."""
    command = re.sub(r"#\d+\b", "#1", statement)
    command = re.sub(r"\bcurl ", "curl -sS --fail-with-body ", command)
    command = command.replace("01a1df48", variables.get("incident", ""))
    if re.search(ENDLESS, statement):
        return run_endless(place, ("bash", "-eu", "-c", f"exec {command}"), variables, statement)
    done = subprocess.run(
        ("bash", "-eu", "-c", command),
        input="a value\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
        cwd=place.folder,
        env=place.environ | variables,
    )
    return [] if done.returncode == 0 else [f"{statement}\n{done.stdout[-600:]}{done.stderr[-600:]}"]


def run_endless(place: Place, command: tuple[str, ...], variables: dict[str, str], shown: str) -> list[str]:
    """Start what follows a stream, let things happen until it writes something, and end it."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place.folder,
        env=place.environ | variables,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        watched = selectors.DefaultSelector()
        watched.register(process.stdout, selectors.EVENT_READ)
        wrote = b""
        for _ in range(WITHIN):
            if watched.select(timeout=1):
                wrote = os.read(process.stdout.fileno(), 65536)
                break
            cause_events(place.client, variables)
        process.terminate()
        if wrote or process.wait() == 0:
            return []
        return [f"{shown}\n{process.stderr.read()[-800:].decode()}"]


def cause_events(client: Client, variables: dict[str, str]) -> None:
    """A failed run, a freeze and a message in each room: one of them is what a stream waits for."""
    client.jobs.run(variables["failing"])
    client.freezes.lift(client.freezes.turn_on({"reason": "a page", "scope": {"tags": ["no job"]}}).id)
    for room in client.rooms.each():
        client.rooms.post(room.id, "Good morning")


def run_python(place: Place, block: str, variables: dict[str, str]) -> list[str]:
    if re.search(r"@app\.job\(.*secrets=", block):
        compile(block, "page", "exec")  # a part of a program
        return []
    names = "\n".join(f"{name} = {value!r}" for name, value in variables.items())
    client = "from foliot import Client\nfoliot = Client()\n"
    acme = 'acme = Client(workspace="acme")\n' if "acme" in block else ""
    program = (sys.executable, "-u", "-c", f"{client}{acme}{names}\n{block}")
    if re.search(ENDLESS_PYTHON, block):
        return run_endless(place, program, variables, block)
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN,
        cwd=place.folder,
        env=place.environ,
    )
    return [] if done.returncode == 0 else [f"{block}\n{done.stderr[-800:]}"]


def test_each_reason_not_to_run_is_used() -> None:
    every = [
        each
        for page in PAGES
        for language, block in BLOCK.findall((HOW_TO / page).read_text())
        if language == "sh"
        for each in statements(block)
    ]
    assert [pattern for pattern in NOT_RUN if not any(re.search(pattern, each) for each in every)] == []
