"""Principals, their roles, and the format of API keys.

A key reads `fol_<prefix>_<secret><checksum>`. The prefix names the key in lists and logs. The secret is never stored. The checksum
rejects a mistyped or cut key without a database query. Callers pass entropy as bytes.

Why: docs/decisions/701-keys-only-lose-rights.md
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from foliot.domain.errors import Conflict, Denied, Invalid
from foliot.domain.ids import KeyId, PrincipalId, WorkspaceId
from foliot.domain.quotas import UNLIMITED, Quotas

ADMINISTRATOR = "an administrator of the installation"  # whose name a workspace does not see
KEY_ENTROPY = 31  # bytes: 8 for the public prefix, 23 (184 bits) for the secret

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_PREFIX, _SECRET, _CHECKSUM = 8, 32, 6
_KEY = re.compile(rf"fol_([0-9A-Za-z]{{{_PREFIX}}})_[0-9A-Za-z]{{{_SECRET + _CHECKSUM}}}", re.ASCII)


def name_person(by: str) -> str:
    """Return a name. An id is left where the workspace does not see the principal: an administrator of the installation."""
    try:
        UUID(by)
    except ValueError:
        return by
    return ADMINISTRATOR


class PrincipalKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    SERVICE = "service"
    SYSTEM = "system"


class MemberRole(StrEnum):
    """The role of a principal, weakest first. Compare by rank, never by the text."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return list(MemberRole).index(self)

    def is_at_least(self, other: MemberRole) -> bool:
        return self.rank >= other.rank


class Permission(StrEnum):
    """The permission that an operation requires: a role in the workspace, or a key of the installation, a worker or an invite."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"
    SYSTEM = "system"
    WORKER = "worker"  # no role: it claims and reports runs, and nothing else
    INVITE = "invite"  # no role: it accepts itself, once
    AGENDA = "agenda"  # no role: it reads the calendar of planned runs, whose address holds the key


@dataclass(frozen=True, slots=True)
class Principal:
    id: PrincipalId
    workspace_id: WorkspaceId | None  # None: an administrator of the whole installation
    kind: PrincipalKind
    name: str
    role: MemberRole

    @property
    def is_system(self) -> bool:
        return self.workspace_id is None

    @property
    def is_agent(self) -> bool:
        return self.kind is PrincipalKind.AGENT

    @property
    def reach(self) -> MemberRole:
        """The effective role. An agent manages only its own jobs, so administrator rights never apply to it."""
        return MemberRole.EDITOR if self.is_agent and self.role is MemberRole.ADMIN else self.role


@dataclass(frozen=True, slots=True)
class KeyBudget:
    """Limits of what an agent makes with a key, beside the quotas of its workspace."""

    max_jobs: int | None = None  # that the agent owns, archived ones not counted
    min_interval: int | None = None  # seconds between two planned times

    def narrowed(self, other: KeyBudget) -> KeyBudget:
        """Return the stricter of both: no key makes one that may do more."""
        jobs = [each for each in (self.max_jobs, other.max_jobs) if each is not None]
        intervals = [each for each in (self.min_interval, other.min_interval) if each is not None]
        return KeyBudget(min(jobs, default=None), max(intervals, default=None))

    def within(self, quotas: Quotas) -> Quotas:
        """Return the quotas of the workspace with this budget on top."""
        least = max(quotas.min_interval, self.min_interval or 0)
        return replace(quotas, own_jobs=self.max_jobs, min_interval=least)


NO_BUDGET = KeyBudget()


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A principal and the key that it presented. Scopes narrow the role; a key without scopes has the whole role."""

    principal: Principal
    key_id: KeyId
    scopes: frozenset[str]
    expires_at: datetime | None
    prefix: str = ""
    budget: KeyBudget = NO_BUDGET

    @property
    def role(self) -> MemberRole | None:
        """The role after the key's scopes are applied; None for a key without a role."""
        if not self.scopes:
            return self.principal.reach
        named = [role for role in MemberRole if role.value in self.scopes]
        if Permission.SYSTEM.value in self.scopes:
            named.append(MemberRole.ADMIN)
        return min((self.principal.reach, named[-1]), key=lambda role: role.rank) if named else None

    def may(self, permission: Permission) -> bool:
        if permission in (Permission.INVITE, Permission.AGENDA):
            return permission.value in self.scopes
        if permission is Permission.WORKER:  # only keys with this scope, and only in their own workspace
            return Permission.WORKER.value in self.scopes and not self.principal.is_system
        role = self.role
        if role is None:
            return False
        if permission is Permission.SYSTEM:
            return self.principal.is_system and (not self.scopes or Permission.SYSTEM.value in self.scopes)
        return role.is_at_least(MemberRole(permission.value))


@dataclass(frozen=True, slots=True)
class Actor:
    """The author of a change, as the audit records it. Changes by Foliot itself have a name only."""

    name: str  # the id of a principal, or "engine" and the like
    key_id: KeyId | None = None
    address: str | None = None  # of the connection
    request_id: str | None = None
    claim: UUID | None = None  # the claim on an idempotency key; the audit entry closes it
    quotas: Quotas = UNLIMITED  # of the workspace; Foliot itself has no limits

    @property
    def principal_id(self) -> PrincipalId | None:
        try:
            return PrincipalId(UUID(self.name))
        except ValueError:
            return None


ENGINE = Actor("engine")  # Foliot itself


@dataclass(frozen=True, slots=True)
class Scope:
    """The limits of one call: its workspace, who acts, which jobs they see, and which revision they may change."""

    workspace_id: WorkspaceId
    actor: Actor = ENGINE
    visible_owner: PrincipalId | None = None  # an agent sees only the jobs that it owns; None: all jobs
    expected_revision: int | None = None  # None: any revision may be changed

    def expecting(self, revision: int | None) -> Scope:
        """Return this scope for a change to that revision only."""
        return replace(self, expected_revision=revision)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key in plain text. It exists in memory only, and its repr hides the secret."""

    prefix: str
    secret: str = field(repr=False)

    @classmethod
    def make(cls, entropy: bytes) -> Self:
        if len(entropy) != KEY_ENTROPY:
            raise ValueError(f"a key is made of {KEY_ENTROPY} bytes of entropy, not {len(entropy)}")
        prefix = _base62(int.from_bytes(entropy[:8], "big") % 62**_PREFIX, _PREFIX)
        body = f"fol_{prefix}_{_base62(int.from_bytes(entropy[8:], 'big'), _SECRET)}"
        return cls(prefix, body + _checksum(body))

    @property
    def hash(self) -> bytes:
        """The stored hash. One round of SHA-256 is enough for a secret of 184 random bits."""
        return hashlib.sha256(self.secret.encode()).digest()


def parse_key(text: str) -> ApiKey | None:
    """Return the key in this text, or None if the text is not a key. Callers answer both cases alike."""
    found = _KEY.fullmatch(text)
    if found is None or _checksum(text[:-_CHECKSUM]) != text[-_CHECKSUM:]:
        return None
    return ApiKey(found[1], text)


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECKSUM)


def _base62(number: int, width: int) -> str:
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = _DIGITS[digit] + digits
    return digits


INVITE = Permission.INVITE.value
WORKER = Permission.WORKER.value  # a key that only claims and reports runs; it has no role
AGENDA = Permission.AGENDA.value


def is_within(maker: KeyHolder, made: KeyHolder) -> bool:
    """Return whether `made` can do nothing that `maker` cannot."""
    if WORKER in made.scopes and not maker.may(Permission.ADMIN):
        return False  # workers are handed the payloads of a whole workspace
    return _reaches(maker, made) and made.budget.narrowed(maker.budget) == made.budget


def refuse_stronger(maker: KeyHolder, made: KeyHolder) -> None:
    if not is_within(maker, made):
        raise Denied(
            f"This key has {maker.role or 'no role here'}; it cannot make a key with more rights.",
            hint="Give the new key scopes that this one has, or ask an administrator.",
        )


def check_scopes(principal: Principal, scopes: Iterable[str]) -> frozenset[str]:
    """Raise Invalid for a scope without effect on this principal: scopes only narrow, so it is a mistake.

    A key for the calendar has no other scope: it lies in an address, which programs store and log.
    """
    given = frozenset(scopes)
    if AGENDA in given and len(given) > 1:
        raise Invalid(
            "The scope agenda cannot be combined with others.",
            pointer="/scopes",
            hint="Make another key for the other scopes.",
        )
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
    if frees or (after.scopes - before.scopes) & {WORKER, AGENDA} or not _reaches(before, after):
        raise _wider("/scopes")


def check_expiry(maker: KeyHolder, expires_at: datetime | None, now: datetime) -> None:
    if expires_at is not None and expires_at <= now:
        raise Invalid("expires_at has passed.", pointer="/expires_at", hint="Choose a time in the future.")
    if maker.expires_at is None:
        return
    if expires_at is None or expires_at > maker.expires_at:
        raise Denied(
            f"This key ends at {maker.expires_at.isoformat()}; it cannot make a key that lasts longer.",
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
