"""Job types of your own: each a function, with what its configuration must look like.

In this folder: foliot serve --app job_types:app, then python job_types.py in another terminal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from foliot import Client, Context, Foliot

app = Foliot("studio")


@dataclass
class Sync:
    source: str
    tables: list[str] = field(default_factory=lambda: ["orders"])


@dataclass
class Generation:
    prompt: str
    words: int = 100


@dataclass
class Report:
    title: str
    format: Literal["csv", "text"] = "csv"


@dataclass
class Check:
    metric: str
    above: float


@app.handler("DATA_SYNC", config=Sync)
def data_sync(config: Sync, ctx: Context) -> dict[str, Any]:
    """Copy tables from a source."""
    for number, table in enumerate(config.tables, 1):
        ctx.progress(number, len(config.tables), note=table)
    return {"copied": len(config.tables), "from": config.source}


@app.handler("AI_GENERATION", config=Generation)
async def ai_generation(config: Generation) -> str:
    """Write a text."""
    return " ".join([config.prompt] * min(3, config.words))


@app.handler("REPORT_GENERATION", config=Report)
def report_generation(config: Report, ctx: Context) -> str:
    """Make a report and keep it with the run."""
    ctx.artifact(f"{config.title}.{config.format}", "day,sales\nmon,12\n")
    return config.title


@app.handler("ALERT_CHECK", config=Check)
async def alert_check(config: Check, input: dict[str, float]) -> dict[str, bool]:  # noqa: A002  # what it is called
    """See whether a figure is too high."""
    return {"alert": input.get(config.metric, 0.0) > config.above}


@app.handler("OUTCOME_CALCULATION")
def outcome_calculation(input: dict[str, float]) -> float:  # noqa: A002
    """Add up what came in."""
    return sum(input.values())


@app.handler("CUSTOM")
def custom(config: dict[str, Any], input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Return the config and the input."""
    return {**config, **input}


def main() -> None:
    jobs: list[dict[str, Any]] = [
        {"type": "DATA_SYNC", "config": {"source": "crm", "tables": ["orders", "customers"]}},
        {"type": "AI_GENERATION", "config": {"prompt": "hello"}},
        {"type": "REPORT_GENERATION", "config": {"title": "sales"}},
        {"type": "ALERT_CHECK", "config": {"metric": "load", "above": 0.9}, "payload": {"load": 0.95}},
        {"type": "OUTCOME_CALCULATION", "payload": {"a": 1, "b": 2}},
        {"type": "CUSTOM", "config": {"x": 1}, "payload": {"y": 2}},
    ]
    with Client() as client:
        for job in jobs:
            made = client.jobs.create({"name": job["type"].lower(), "schedule": {"kind": "manual"}, **job})
            run = client.jobs.run(made.id)
            list(client.runs.follow_logs(run.id))  # comes to its end with the run
            done = client.runs.get(run.id)
            print(f"{job['type']}: {done.status}, {done.output}")


if __name__ == "__main__":
    main()
