"""How keys and oneself look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.tables import BAD, GOOD, QUIET, SOON, STRONG, cell, columns, facts, stacked
from foliot.cli.times import local_time_relative, local_zone, relative
from foliot.wire.identity import KeyOut, MeOut


def me_page(me: MeOut, url: str, now: datetime) -> RenderableType:
    role = "system administrator" if me.is_system else me.role
    most = "any number" if me.limits.jobs is None else f"{me.limits.jobs:,}"
    return stacked(
        Text.assemble((cell(me.principal.name).plain, STRONG), f", {role} at {url}"),
        facts(
            (
                ("kind", me.principal.kind),
                ("sees", "its own jobs only" if me.sees_only_own_jobs else None),
                ("workspace", f"{me.workspace.slug} ({me.workspace.name}), {me.workspace.default_timezone}"),
                ("key", f"fol_{me.key.prefix}_…"),
                ("scopes", ", ".join(me.key.scopes) or "all that its holder may"),
                (
                    "expires",
                    local_time_relative(me.key.expires_at, local_zone(), now)
                    if me.key.expires_at
                    else "never",
                ),
                ("jobs", f"{me.jobs:,} of {most}, each at most every {me.limits.min_interval} s"),
            )
        ),
    )


def key_list(keys: Sequence[KeyOut], now: datetime) -> RenderableType:
    if not keys:
        return Text("No keys.")
    rows = [
        (
            cell(f"fol_{each.prefix}_…"),
            cell(each.name),
            cell(f"{each.principal.name} ({each.principal.kind})"),
            cell(", ".join(each.scopes) or each.role or "-"),
            _state(each, now),
            cell(relative(each.last_used_at - now) if each.last_used_at else "never", QUIET),
        )
        for each in keys
    ]
    return columns(
        ("KEY", "NAME", "HOLDER", "MAY", "STATE", "USED"), rows, wraps=("NAME", "HOLDER"), drops=("USED",)
    )


def _state(key: KeyOut, now: datetime) -> Text:
    if key.revoked_at is not None:
        return cell(f"revoked {relative(key.revoked_at - now)}", BAD)
    if key.expires_at is None:
        return cell("valid", GOOD)
    if key.expires_at <= now:
        return cell(f"expired {relative(key.expires_at - now)}", BAD)
    return cell(f"expires {relative(key.expires_at - now)}", SOON)
