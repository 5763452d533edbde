"""crontab(5): the form of a user, and that of /etc/crontab and /etc/cron.d with a user in the sixth field."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from foliot.importers.records import COMMAND_NOTE, BadRecordError, Draft, ImportedRecords, collect, lines_of

_VARIABLE = re.compile(r"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|\"([^\"]+)\"|'([^']+)')\s*=\s*(.*?)\s*$")
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_SPECIAL = frozenset({"MAILTO", "MAILFROM", "CRON_TZ", "TZ", "RANDOM_DELAY", "SHELL", "PATH"})


@dataclass(slots=True)
class _Line:
    number: int
    text: str
    variables: dict[str, str] = field(default_factory=dict)


def read_crontab(text: str, *, system: bool, time_zone: str | None = None) -> ImportedRecords:
    """Variables apply to the lines below them. Without CRON_TZ, cron means the clock of its host: `time_zone`."""
    found: list[tuple[str | None, Any]] = []
    variables: dict[str, str] = {}
    for number, line in lines_of(text):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if (assigned := _VARIABLE.fullmatch(line)) is not None:
            variables[assigned[1] or assigned[2] or assigned[3]] = assigned[4].strip("\"'")
            continue
        found.append((None, _Line(number, bare, dict(variables))))
    return collect("crontab", found, lambda line: _draft(line, system=system, time_zone=time_zone))


def _draft(line: _Line, *, system: bool, time_zone: str | None) -> Draft:
    fields = 1 if line.text.startswith("@") else 5
    parts = line.text.split(maxsplit=fields + int(system))
    if len(parts) <= fields + int(system):
        raise BadRecordError(f"Line {line.number}: there is no command after the schedule.")
    when, command = " ".join(parts[:fields]), parts[-1]
    user = parts[fields] if system else None
    zone = line.variables.get("CRON_TZ") or line.variables.get("TZ") or time_zone
    shell = line.variables.get("SHELL", "/bin/sh")
    program, stdin = _split_percent(command)
    draft = Draft(
        name=f"{program}" if user is None else f"{program} ({user})",
        type="command",
        schedule=_schedule(when, zone),
        config={"argv": [shell, "-c", program]},
        notes={"line": line.number, "user": user, "command": command},
    )
    draft.warn(COMMAND_NOTE)
    if when == "@reboot":
        draft.warn("@reboot has no time: it is a manual job. Run it from the unit that starts the host.")
    elif zone is None:
        draft.warn("The crontab names no zone: UTC is assumed. Give the zone of its host.")
    if "~" in when:
        raise BadRecordError(f"Line {line.number}: a random range (~) is not a fixed time; write one.")
    if stdin is not None:
        draft.config["argv"][2] = f"{program} <<'END_OF_INPUT'\n{stdin}END_OF_INPUT"
    if path := line.variables.get("PATH"):
        draft.config["argv"][2] = f"PATH={shlex.quote(path)}; export PATH; {draft.config['argv'][2]}"
    if user is not None:
        draft.warn(f"It ran as the user {user}; a command of Foliot runs as the user of its worker.")
    env = {name: value for name, value in line.variables.items() if name not in _SPECIAL}
    if env:
        draft.config["env"] = env
        draft.warn("Its variables are copied: move secrets among them to the secrets of the workspace.")
    if mail := line.variables.get("MAILTO"):
        draft.notes["mail_to"] = mail
        draft.warn(f"cron mailed its output to {mail}: add a notification rule.")
    if delay := line.variables.get("RANDOM_DELAY"):
        if not delay.isdecimal():
            raise BadRecordError(f"Line {line.number}: RANDOM_DELAY is not a number of minutes.")
        draft.schedule = {**draft.schedule, "spread": f"{int(delay)}m"}
    return draft


def _schedule(when: str, zone: str | None) -> dict[str, Any]:
    if when == "@reboot":
        return {"kind": "manual"}
    if when.startswith("@") and when not in _WORDS:
        raise BadRecordError(f"{when} is not a schedule of cron.")
    schedule = {"kind": "cron", "expr": _WORDS.get(when, when)}
    return schedule if zone is None else schedule | {"timezone": zone}


def _split_percent(command: str) -> tuple[str, str | None]:
    """The first % that is not escaped ends the command; the others are line ends of its input."""
    parts = re.split(r"(?<!\\)%", command)
    cleaned = [part.replace("\\%", "%") for part in parts]
    return cleaned[0].strip(), None if len(parts) == 1 else "\n".join(cleaned[1:]) + "\n"
