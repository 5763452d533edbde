"""The vault: seals and opens values with the master keys.

A master key is 32 random bytes, and its id is derived from it. The first known key seals; the others only open what they
sealed. A sealed value is bound to a purpose, such as "version 3 of that secret of that workspace", and opens only for it.

Why: docs/decisions/710-secret-encryption.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from foliot.domain.errors import Conflict, FoliotError, Invalid, Unavailable
from foliot.domain.ids import SecretId, WorkspaceId

log = logging.getLogger(__name__)

KEY_BYTES = 32
NONCE_BYTES = 12
FEWEST_DISTINCT = 12  # distinct bytes of a key; 32 random bytes hardly ever have fewer than 24
MAKE_ONE = "Make one with `openssl rand -base64 32`."
_HEX = re.compile(r"[0-9A-Fa-f]{64}")


@dataclass(frozen=True, slots=True)
class MasterKey:
    id: str
    raw: bytes = field(repr=False)

    @classmethod
    def of(cls, raw: bytes) -> Self:
        return cls(hashlib.sha256(b"foliot master key\0" + raw).hexdigest()[:12], raw)

    @classmethod
    def new(cls) -> Self:
        return cls.of(secrets.token_bytes(KEY_BYTES))

    @property
    def text(self) -> str:
        return base64.urlsafe_b64encode(self.raw).decode().rstrip("=")


class SealedValue(NamedTuple):
    key_id: str
    box: bytes  # nonce, ciphertext, tag


def purpose(workspace_id: WorkspaceId, secret_id: SecretId, version: int) -> bytes:
    """Return the purpose of a secret's value: moved elsewhere, or restored over a newer version, it does not open."""
    return b"foliot secret\0" + workspace_id.bytes + secret_id.bytes + version.to_bytes(8, "big")


class UnreadableError(Exception):
    """No known key opens the value, or the value was changed."""

    def __init__(self, key_id: str, *, is_known: bool) -> None:
        super().__init__(key_id)
        self.key_id = key_id
        self.is_known = is_known  # otherwise the sealed value is another


class KeySource(Protocol):
    """The source of this process's master keys."""

    def read(self) -> Sequence[MasterKey]:
        """Return the keys, the present one first."""
        ...

    def may_add(self) -> None:
        """Refuse when `add` would."""
        ...

    def add(self, key: MasterKey) -> None:
        """Store a new present key durably."""
        ...


class Vault:
    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._keys: tuple[MasterKey, ...] = ()
        self.read_again()

    def __repr__(self) -> str:
        return f"Vault({', '.join(key.id for key in self._keys)})"

    @property
    def present(self) -> str | None:
        """The id of the sealing key; None without a key."""
        return self._keys[0].id if self._keys else None

    @property
    def known(self) -> tuple[str, ...]:
        return tuple(key.id for key in self._keys)

    def knows(self, key_id: str) -> bool:
        """Open the value. Read the keys again when none fits: another process may have added one."""
        if key_id in self.known:
            return True
        try:
            self.read_again()
        except FoliotError as error:
            log.warning("master_key.not_read", extra={"reason": error.message})
        return key_id in self.known

    def read_again(self) -> None:
        self._keys = tuple(self._source.read())

    def may_renew(self) -> None:
        """Refuse when `renew` would."""
        self._source.may_add()

    def renew(self) -> str:
        """Create a new present key and return its id."""
        key = MasterKey.new()
        self._source.add(key)
        self.read_again()
        return key.id

    def seal(self, purpose: bytes, plain: bytes) -> SealedValue:
        if not self._keys:
            raise no_key()
        key, nonce = self._keys[0], secrets.token_bytes(NONCE_BYTES)
        return SealedValue(key.id, nonce + AESGCM(key.raw).encrypt(nonce, plain, purpose))

    def open(self, purpose: bytes, sealed: SealedValue) -> bytes:
        if not self.knows(sealed.key_id):
            raise UnreadableError(sealed.key_id, is_known=False)
        key = next(each for each in self._keys if each.id == sealed.key_id)
        try:
            return AESGCM(key.raw).decrypt(sealed.box[:NONCE_BYTES], sealed.box[NONCE_BYTES:], purpose)
        except (InvalidTag, ValueError):  # ValueError: a nonce too short
            raise UnreadableError(sealed.key_id, is_known=True) from None

    def keyed(self, digest: bytes) -> bytes:
        """Return a keyed digest: without the key, the database alone allows no guessing."""
        if not self._keys:
            raise no_key()
        return hmac.digest(self._keys[0].raw, b"foliot digest\0" + digest, "sha256")

    def check(self) -> None:
        """Check that encryption works in this process. Raise Unavailable."""
        if not self._keys:
            return
        plain = secrets.token_bytes(64)
        sealed = self.seal(b"self-test", plain)
        touched = SealedValue(sealed.key_id, sealed.box[:-1] + bytes((sealed.box[-1] ^ 1,)))
        if plain in sealed.box or self.open(b"self-test", sealed) != plain or self._opens(touched):
            raise Unavailable(
                "The self-test of encryption failed: what was sealed did not come back as it was, or came back changed.",
                hint="The installed `cryptography` does not work on this machine. Reinstall it.",
            )

    def _opens(self, sealed: SealedValue) -> bool:
        try:
            self.open(b"self-test", sealed)
        except UnreadableError:
            return False
        return True


class FixedKeys:
    """Keys that were passed to this process and live in memory only."""

    def __init__(self, keys: Sequence[MasterKey] = ()) -> None:
        self._keys = list(keys)

    def read(self) -> Sequence[MasterKey]:
        return self._keys

    def add(self, key: MasterKey) -> None:
        self.may_add()

    def may_add(self) -> None:
        raise Conflict(
            "The master key is given by FOLIOT_MASTER_KEY, which this process cannot change.",
            hint="Put a new key in front of the one there, start every node again, and rotate without a new key.",
        )


def read_keys(text: str, where: str) -> list[MasterKey]:
    """Read keys separated by blanks, lines or commas, the present one first; # starts a comment."""
    words = re.sub(r"#.*", "", text).replace(",", " ").split()
    if not words:
        raise Invalid(f"{where} holds no master key.", hint=MAKE_ONE)
    return list(dict.fromkeys(_key(word, where) for word in words))


def no_key() -> Unavailable:
    return Unavailable(
        "This node has no master key, so it can neither keep nor read secrets.",
        hint="Give it the FOLIOT_MASTER_KEY, or the file master.key in its data directory, that the other nodes have.",
    )


def _key(word: str, where: str) -> MasterKey:
    try:
        raw = bytes.fromhex(word) if _HEX.fullmatch(word) else _from_base64(word)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise Invalid(
            f"{where} holds something that is no master key: a key is {KEY_BYTES} random bytes, in base64 or hex.",
            hint=MAKE_ONE,
        )
    if len(set(raw)) < FEWEST_DISTINCT:
        raise Invalid(f"{where} holds a master key that is not random: it can be guessed.", hint=MAKE_ONE)
    return MasterKey.of(raw)


def _from_base64(word: str) -> bytes:
    plain = word.replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
