"""`foliot serve` and `foliot migrate`: start a node, or only bring its database up to date."""

from __future__ import annotations

from foliot.cli import options
from foliot.cli.output import print_out


def serve(
    config: options.Config = None,
    data_dir: options.DataDir = None,
    host: options.Host = None,
    port: options.Port = None,
    pg_bindir: options.PgBindir = None,
    log_format: options.LogFormat = None,
    log_level: options.LogLevel = None,
    shutdown_grace: options.ShutdownGrace = None,
    roles: options.Roles = None,
    app: options.App = None,
) -> None:
    """Run Foliot on this machine until Ctrl-C or SIGTERM.

    Without FOLIOT_DATABASE_URL it runs a private PostgreSQL under the data directory. The first start makes
    an administrator's key, prints it once and keeps it in admin.key there.
    """
    settings = options.settings(
        config=config,
        data_dir=data_dir,
        host=host,
        port=port,
        pg_bindir=pg_bindir,
        log_format=log_format,
        log_level=log_level,
        shutdown_grace=shutdown_grace,
        roles=roles,
        app=app,
    )
    from foliot.wiring import node

    node.serve(settings, print_out)


def migrate(
    config: options.Config = None,
    data_dir: options.DataDir = None,
    pg_bindir: options.PgBindir = None,
    log_format: options.LogFormat = None,
    log_level: options.LogLevel = None,
) -> None:
    """Bring the database to this version's tables and stop. `serve` does the same by itself."""
    settings = options.settings(
        config=config, data_dir=data_dir, pg_bindir=pg_bindir, log_format=log_format, log_level=log_level
    )
    from foliot.wiring import admin_tasks

    applied = admin_tasks.migrate(settings)
    print_out(
        f"Applied {len(applied)}: {', '.join(applied)}."
        if applied
        else "Nothing to do: the database is up to date."
    )
