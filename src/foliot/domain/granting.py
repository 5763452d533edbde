"""The rights that one key may give to another: never more than its own, and never for longer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from foliot.domain.access import KeyHolder, Permission, Principal
from foliot.domain.errors import Conflict, Denied, Invalid

WORKER = Permission.WORKER.value  # a key that only claims and reports runs; it has no role


def is_within(maker: KeyHolder, made: KeyHolder) -> bool:
    """Return whether `made` has no right that `maker` lacks."""
    if WORKER in made.scopes and not maker.may(Permission.ADMIN):
        return False  # workers receive the payloads of a whole workspace
    return _reaches(maker, made)


def refuse_stronger(maker: KeyHolder, made: KeyHolder) -> None:
    if not is_within(maker, made):
        raise Denied(
            f"This key has {maker.role or 'no role here'}; it cannot make one that may more.",
            hint="Give the new key scopes that this one has, or ask an administrator.",
        )


def check_scopes(principal: Principal, scopes: Iterable[str]) -> frozenset[str]:
    """Raise Invalid for a scope without effect on this principal: scopes only narrow, so it is a mistake."""
    given = frozenset(scopes)
    if Permission.SYSTEM.value in given and not principal.is_system:
        raise Invalid(
            "Only administrators of the installation have the scope system.",
            pointer="/scopes",
            hint="Leave it out, or use admin.",
        )
    return given


def check_narrower(before: KeyHolder, after: KeyHolder) -> None:
    """Raise Invalid unless the change removes rights: the holder of an issued key is not asked again."""
    frees = bool(before.scopes) and not after.scopes
    if frees or (after.scopes - before.scopes) & {WORKER} or not _reaches(before, after):
        raise _wider("/scopes")


def check_expiry(maker: KeyHolder, holder: Principal, expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise Invalid(
            "expires_at has passed.", pointer="/expires_at", hint="Name an instant that lies ahead."
        )
    if holder.id != maker.principal.id or maker.expires_at is None:
        return
    if expires_at is None or expires_at > maker.expires_at:
        raise Denied(
            f"This key ends at {maker.expires_at.isoformat()}; it cannot make one for itself that lasts longer.",
            hint="Give an expires_at before that, or ask an administrator.",
        )


def check_sooner(before: datetime | None, after: datetime | None, now: datetime) -> None:
    if after is not None and after <= now:
        raise Invalid(
            "expires_at has passed.", pointer="/expires_at", hint="To end a key at once, revoke it."
        )
    if before is not None and (after is None or after > before):
        raise _wider("/expires_at")


def _reaches(one: KeyHolder, other: KeyHolder) -> bool:
    if other.may(Permission.SYSTEM) and not one.may(Permission.SYSTEM):
        return False
    return other.role is None or (one.role is not None and one.role.is_at_least(other.role))


def _wider(pointer: str) -> Conflict:
    return Conflict(
        "A key can only be narrowed.", pointer=pointer, hint="Make a new key and revoke this one."
    )
