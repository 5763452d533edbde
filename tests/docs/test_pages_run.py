"""The commands, requests and Python of the how-to pages are executed, one page after the other, against one server."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliot import Client
from tests.fork_server import environ_without_foliot, write_program
from tests.stories.server_process import ServerProcess
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
    r"--follow|--watch|rooms follow|curl .*-N |runs logs RUN": "does not end by itself: tests/cli, tests/sdk",
    r"--profile|FOLIOT_PROFILE|--url https": "names a server that is not here: tests/cli/test_formats.py",
    r"db restore|db release": "needs a stopped server: tests/stories/test_dump_and_restore.py",
    r'"type": "(celery|rq|bullmq)"': "needs Redis: tests/stories/test_bridges.py",
    r"foliot hosts|--host h1|--server pvp|\"server\": \"pvp\"": "needs a host: tests/stories/test_hosts.py",
    r"DATA_SYNC": "needs an app that registers the type: tests/stories/test_app.py",
    r"incidents .*01a1df48|notify (?!test room)|channels(?! create -f -)|\$channel_id": "needs a mail server and an incident: tests/services/notifications",
    r"artifacts (list|get)": "needs a run that stored a file: tests/stories",
    r"foliot jobs edit report$": "opens an editor: needs a terminal",
    r"\$freeze_id": "names the answer of the line before",
    r"foliot migrate": "needs the operator's own PostgreSQL: tests/stories",
    r"runs retry": "needs a failed run: tests/cli",
    r"billing-token": "names secrets that only the reader has",
}
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
        serving = ServerProcess(folder / ".foliot", FOLIOT_ALLOW_COMMANDS="yes")
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
                yield Place(folder, url, environ, client)
        finally:
            serving.end()


def prepare(place: Place, page: str) -> dict[str, str]:
    """Remove the jobs of the page before, and make the things that pages speak of. Return them as variables."""
    client, text = place.client, (HOW_TO / page).read_text()
    for job in list(client.jobs.each()):
        client.jobs.delete(job.id, detach=True)
    for freeze in client.freezes.list().items:
        client.freezes.lift(freeze.id)
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
    if page == "import.md":
        client.members.create("assistant", kind="agent", role="editor")
        client.rooms.create("Garden", key="garden")
        (place.folder / "my-crontab").write_text("30 5 * * 1-5 /usr/local/bin/report --quiet\n")
        shutil.copy(OPENCLAW, place.folder / "jobs.json")
        (place.folder / "runs.jsonl").write_text(
            '{"ts": 1769062518642, "jobId": "5d0c2f1e-greenhouse-am", "action": "finished", "status": "ok"}\n'
        )
    run = client.jobs.run(report)
    agents = [each for each in client.members.each() if each.name == "the pages"]
    agent = agents[0] if agents else client.members.create("the pages", kind="agent", role="editor")
    if not any(each.name == "ada" for each in client.members.each()):
        client.members.create("ada", kind="user", role="editor")
    secret = client.keys.create("of the page", principal=agent.id)
    rule = {"kind": "weekly", "start": "00:00", "end": "00:00", "days": ["sun"]}
    sundays = client.calendars.create({"name": "sundays", "kind": "blackout", "rules": [rule]})
    key = "standup" if page == "webhooks.md" else "of-the-pages"
    made = client.rooms.create("Of the pages", key=key, agents=[agent.id])
    for name in ("crm-token", "standup-hook"):
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
                    failed += run_shell(place, each, variables)
    assert not failed, "\n\n".join(failed)


def run_shell(place: Place, statement: str, variables: dict[str, str]) -> list[str]:
    """Numbers of runs such as #12 become #1: the jobs of the pages are new here."""
    command = re.sub(r"#\d+\b", "#1", statement)
    command = re.sub(r"\bcurl ", "curl -sS --fail-with-body ", command)
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


def run_python(place: Place, block: str, variables: dict[str, str]) -> list[str]:
    if re.search(r"\.follow\(|\.events\(|follow_logs\(|@app\.job\(.*secrets=", block):
        compile(block, "page", "exec")  # it does not end, or it is a part of a program
        return []
    names = "\n".join(f"{name} = {value!r}" for name, value in variables.items())
    client = "from foliot import Client\nfoliot = Client()\n"
    acme = 'acme = Client(workspace="acme")\n' if "acme" in block else ""
    done = subprocess.run(
        (sys.executable, "-c", f"{client}{acme}{names}\n{block}"),
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
