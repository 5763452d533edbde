"""The people in tests, by the names that records and audit keep of them."""

from __future__ import annotations

from foliot.domain.access import Actor

ADA = Actor("ada")
ANA = Actor("ana")
BEN = Actor("ben")
EVE = Actor("eve")
TEST = Actor("test")
