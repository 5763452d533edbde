"""Kubernetes CronJobs, as YAML or JSON: single documents, several in one file, and lists such as `kubectl get -o yaml` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from foliot.importers.records import (
    COMMAND_NOTE,
    BadRecordError,
    Draft,
    ImportedRecords,
    collect,
    read_yaml,
    seconds,
)

_OVERLAP = {"Allow": "concurrent", "Forbid": "skip", "Replace": "cancel_running"}


def read_kubernetes(text: str) -> ImportedRecords:
    found = [each for document in read_yaml(text) for each in _resources(document)]
    return collect("kubernetes", [(_key(each), each) for each in found], _draft)


def _resources(document: Any) -> Iterator[Any]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        for each in items if isinstance(items, list) else ():
            yield from _resources(each)
    elif isinstance(document, dict) and document.get("kind") == "CronJob":
        yield document


def _key(raw: Mapping[str, Any]) -> str | None:
    about = _dict(raw.get("metadata"))
    name = about.get("name")
    return None if not name else f"{about.get('namespace', 'default')}/{name}"


def _draft(raw: Mapping[str, Any]) -> Draft:
    spec = raw.get("spec")
    if not isinstance(spec, dict) or not spec.get("schedule"):
        raise BadRecordError("The CronJob has no spec.schedule.")
    key = _key(raw)
    if key is None:
        raise BadRecordError("The CronJob has no metadata.name.")
    job = _dict(_dict(spec.get("jobTemplate")).get("spec"))
    containers = _dict(_dict(job.get("template")).get("spec")).get("containers") or []
    if not containers:
        raise BadRecordError("The CronJob has no container.")
    container = _dict(containers[0])
    argv = [str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))]
    schedule: dict[str, Any] = {"kind": "cron", "expr": str(spec["schedule"])}
    zone = spec.get("timeZone")
    if zone is None and schedule["expr"].startswith(("CRON_TZ=", "TZ=")):
        named, _, rest = schedule["expr"].partition(" ")
        zone, schedule["expr"] = named.partition("=")[2], rest.strip()
    schedule["timezone"] = str(zone or "UTC")
    draft = Draft(
        name=key.partition("/")[2],
        type="command",
        schedule=schedule,
        config={"argv": argv or ["true"]},
        notes={
            "namespace": key.partition("/")[0],
            "image": container.get("image"),
            "was_suspended": bool(spec.get("suspend")),
        },
    )
    draft.warn(COMMAND_NOTE)
    if zone is None:
        draft.warn("The CronJob names no zone: UTC is assumed, as most clusters do.")
    if not argv:
        draft.warn(f"The command stands in the image {container.get('image')}: replace `true` by it.")
    else:
        draft.warn(
            f"It ran in the image {container.get('image')}: its programs must exist where the worker runs."
        )
    if len(containers) > 1:
        draft.warn(f"It has {len(containers)} containers; only the first is kept.")
    draft.fields["overlap"] = _OVERLAP.get(str(spec.get("concurrencyPolicy", "Allow")), "concurrent")
    if deadline := spec.get("startingDeadlineSeconds"):
        draft.fields["grace"] = seconds(deadline)
    if limit := job.get("activeDeadlineSeconds"):
        draft.fields["timeout"] = seconds(limit)
    # Kubernetes waits 10 s, 20 s, 40 s, … and at most 6 minutes between its tries.
    draft.fields["retry"] = {
        "max": int(job.get("backoffLimit", 6)),
        "strategy": "exponential",
        "base": "10s",
        "cap": "6m",
    }
    env = {
        str(each["name"]): str(each["value"])
        for each in container.get("env") or ()
        if isinstance(each, dict) and "value" in each
    }
    if env:
        draft.config["env"] = env
    if any("valueFrom" in _dict(each) for each in container.get("env") or ()) or container.get("envFrom"):
        draft.warn("Some variables come from secrets or config maps of the cluster: add them as secrets.")
    return draft


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
