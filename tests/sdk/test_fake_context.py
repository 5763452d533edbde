"""A context for tests of a job's code, and the names that `foliot` exports."""

from __future__ import annotations

import foliot
from foliot import Context, FakeContext, sdk


def send(ctx: Context, mails: int) -> None:
    ctx.log("sent", mails)
    ctx.progress(1, 2, "half")
    ctx.artifact("mails.txt", "all of them")


def test_it_keeps_what_the_code_logs_reports_and_stores() -> None:
    ctx = FakeContext(job="report", attempt=2)
    send(ctx, 12)
    assert ctx.lines == ["sent 12", "50 % (1 of 2): half"]
    assert ctx.reported == [(1.0, 2.0, "half")]
    assert ctx.artifacts == {"mails.txt": b"all of them"}
    assert (ctx.job, ctx.attempt, ctx.cancelled) == ("report", 2, False)


def test_every_exception_of_the_client_is_exported() -> None:
    exceptions = [
        name
        for name in sdk.__all__
        if isinstance(getattr(sdk, name), type) and issubclass(getattr(sdk, name), Exception)
    ]
    assert set(exceptions) - {"AppDefinitionError"} <= set(foliot.__all__)
    assert all(getattr(foliot, name) is not None for name in foliot.__all__)
