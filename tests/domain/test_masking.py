"""Values of secrets are taken out of texts, however they are spelled there."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.masking import MASK, NO_MASKS, SHORTEST, Masks

TOKEN = "s3cr3t/t0ken+with=signs&more"
values = st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), min_size=SHORTEST, max_size=40
).filter(lambda value: len("".join(value.split())) >= SHORTEST)
around = st.text(st.characters(codec="utf-8"), max_size=20)


@pytest.mark.parametrize(
    "spelled",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote(TOKEN, safe="").replace("%2F", "%2f").replace("%2B", "%2b").replace("%3D", "%3d"),
        quote_plus(TOKEN),
        json.dumps(TOKEN)[1:-1],
        base64.b64encode(TOKEN.encode()).decode(),
        base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
    ],
)
def test_each_spelling_is_masked(spelled: str) -> None:
    assert Masks([TOKEN]).text(f"before {spelled} after") == f"before {MASK} after"


@pytest.mark.parametrize("user", ["a", "ab", "abc", "someone"])
def test_a_password_within_basic_authorization_is_masked(user: str) -> None:
    """Its letters depend on how many bytes stand before it: only those that are shared with the neighbours are left."""
    whole = base64.b64encode(f"{user}:{TOKEN}".encode()).decode()
    found = Masks([TOKEN]).text(whole)
    assert MASK in found
    assert len(found) <= len(base64.b64encode(f"{user}:".encode())) + len(MASK) + 4


def test_the_credential_behind_bearer_is_masked_by_itself() -> None:
    assert Masks([f"Bearer {TOKEN}"]).text(f"token={TOKEN}") == f"token={MASK}"


def test_each_line_of_a_long_key_is_masked_and_so_is_base64_broken_into_lines() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqh\nkiG9w0BAQEFAASCBK\n-----END KEY-----\n"
    masks = Masks([key])
    assert masks.text(f"it is\n{key}.") == f"it is\n{MASK}\n."
    assert masks.text("line: kiG9w0BAQEFAASCBK") == f"line: {MASK}"
    folded = base64.encodebytes(key.encode() * 3).decode()
    assert Masks([key * 3]).text(folded).strip() == MASK


def test_what_is_shorter_than_four_characters_is_left_alone() -> None:
    assert not Masks(["abc"])
    assert Masks(["abc", TOKEN]).text(f"abc {TOKEN}") == f"abc {MASK}"


def test_a_value_cut_off_at_the_end_of_a_text_is_masked_as_far_as_it_goes() -> None:
    assert Masks([TOKEN]).text("answer: " + TOKEN[:-3]) == f"answer: {MASK}"
    assert Masks(["https://hooks.example.test/T0/B0/xyz"]).text("it was https") == "it was https"


def test_json_is_masked_in_keys_and_values_and_keeps_its_shape() -> None:
    found = Masks([TOKEN]).json({"a": [TOKEN, 1, None, {TOKEN: f"x{TOKEN}"}]})
    assert found == {"a": [MASK, 1, None, {MASK: f"x{MASK}"}]}


def test_without_masks_nothing_is_touched() -> None:
    value: Any = {"a": [TOKEN]}
    assert NO_MASKS.text(TOKEN) is TOKEN
    assert NO_MASKS.json(value) == value


@given(values, around, around)
def test_no_value_survives_in_any_text(value: str, before: str, after: str) -> None:
    found = Masks([value]).text(before + value + after)
    joined = "".join(found.splitlines())
    assert "".join(value.splitlines()) not in joined.replace(MASK, "\0") or MASK in value
    for encoded in (base64.b64encode(value.encode()).decode(), quote(value, safe="")):
        assert encoded not in Masks([value]).text(before + encoded + after)


@given(st.lists(values, min_size=1, max_size=3), around)
def test_a_text_without_secrets_stays_as_it_is(secrets: list[str], text: str) -> None:
    masks = Masks(secrets)
    joined = "".join(text.splitlines())
    if not masks.spans(joined) and not masks.cut_off(joined):
        assert masks.text(text) == text


few = st.text(st.sampled_from("ab"), min_size=SHORTEST, max_size=12)


@given(few, st.lists(few, max_size=8).map("".join), st.integers(0, 11))
def test_secrets_that_repeat_themselves_are_found_wherever_they_stand(
    value: str, text: str, cut: int
) -> None:
    masks, text = Masks([value]), text + value[:cut]
    covered = {place for start, end in masks.spans(text) for place in range(start, end)}
    starts = [at for at in range(len(text)) if text.startswith(value, at)]
    assert {at + place for at in starts for place in range(len(value))} <= covered
    begun = [size for size in range(SHORTEST, len(value)) if text.endswith(value[:size])]
    assert masks.begun(text) >= max(begun, default=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a" * 65_536, "a" * 1_000_000),
        ("a" * 65_536, "a" * 1_000_000 + "b"),
        ("a" * 65_535 + "b", "a" * 1_000_000),
        ("a" * 32_768 + "b" + "a" * 32_767, "a" * 1_000_000),
        ("ab" * 32_768, "ab" * 500_000 + "a"),
    ],
    ids=range(5),
)
def test_no_secret_makes_a_text_take_minutes(value: str, text: str) -> None:
    """By the rules of a search that steps one letter on, each of these would hold up a worker for minutes or hours."""
    assert MASK in Masks([value]).text(text)


def test_what_makes_an_address_secret_is_masked_without_the_rest_of_it() -> None:
    masks = Masks(["https://Hooks.example/api/webhooks/123/T0KEN-S3CRET?key=0123456789&wait=true"])
    reported = "Cannot POST /api/webhooks/123/T0KEN-S3CRET at https://hooks.example/ with 0123456789"
    assert masks.text(reported) == f"Cannot POST {MASK} at https://hooks.example/ with {MASK}"
    masks = Masks(["postgresql://shop:p%40ssw0rd@db.internal:5432/shop"])
    assert (
        masks.text("p@ssw0rd or p%40ssw0rd for shop at db.internal")
        == f"{MASK} or {MASK} for shop at db.internal"
    )
    assert Masks(["https://example.test/hook"]).text("a hook of example.test") == "a hook of example.test"


def test_a_number_that_holds_a_secret_is_masked() -> None:
    reported = {"pin": 8675309, "grown": 186753091, "shown": 86, "share": 0.5, "is": True}
    assert Masks(["8675309"]).json(reported) == {
        "pin": MASK,
        "grown": MASK,
        "shown": 86,
        "share": 0.5,
        "is": True,
    }
