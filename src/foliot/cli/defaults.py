"""`foliot defaults`: retry, timeout, retention and zone of jobs that leave them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.session import DryRun, Session, api_command
from foliot.cli.tables import BOLD, Block, facts, stack, styled
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.defaults import DefaultsOut

app = typer.Typer(help="Defaults of jobs in the workspace.", no_args_is_help=True)


@app.command()
@api_command
def show(session: Session) -> None:
    """Show the defaults and who sets each: the workspace or the installation."""
    found = session.client.defaults.get()
    session.show(found, lambda: defaults_page(found))


@app.command("set")
@api_command
def set_defaults(
    session: Session,
    timeout: Annotated[
        str | None, typer.Option(help="How long an attempt may take, such as 10m.", metavar="DURATION")
    ] = None,
    retries: Annotated[
        int | None, typer.Option(min=0, max=1000, help="Maximum number of retries; 0 for none.", metavar="N")
    ] = None,
    retry_delays: Annotated[
        str | None, typer.Option(help="Delays before the retries: 1m,5m,30m.", metavar="DURATIONS")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="How long to keep finished runs, such as 90d.", metavar="DURATION")
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(min=1, help="How many finished runs to keep in any case.", metavar="N")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", "--tz", help="Zone of schedules written from now on.", metavar="ZONE"),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(
            "--reset",
            help="Use the installation's value again: retry, timeout or retention; repeatable.",
            metavar="FIELD",
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Set defaults of the workspace. Jobs that leave a field out get the new value."""
    from foliot.cli.jobs.flags import retry_body

    fields: dict[str, Any] = dict.fromkeys(reset or ())
    retention = {
        name: value for name, value in (("keep", keep), ("keep_last", keep_last)) if value is not None
    }
    given = {
        "timeout": timeout,
        "retry": retry_body(retries, retry_delays),
        "retention": retention or None,
        "timezone": timezone,
    }
    fields |= {name: value for name, value in given.items() if value is not None}
    if not fields:
        raise Invalid("Nothing to set.", hint="Use --timeout, --retries, --keep, --timezone or --reset.")
    verbs = session.client.defaults.dry_run if dry_run else session.client.defaults
    after = verbs.change(**fields)
    session.show(after, lambda: defaults_page(after))


def defaults_page(found: DefaultsOut) -> Block:
    from foliot.cli.jobs.views import format_retry
    from foliot.wire.durations import write_duration

    def of(name: str) -> str:
        return f"  ({found.origins[name]})"

    kept = "or" if found.retention.mode == "all" else "and"
    return stack(
        styled("Would be set. Nothing was done.", BOLD) if found.dry_run else None,
        facts(
            (
                ("timeout", write_duration(found.timeout) + of("timeout")),
                ("retry", format_retry(found.retry) + of("retry")),
                (
                    "keep runs",
                    f"{write_duration(found.retention.keep)} {kept} the last {found.retention.keep_last:,}"
                    + of("retention"),
                ),
                ("zone", f"{found.timezone}  (workspace)"),
            )
        ),
    )
