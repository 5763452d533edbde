"""Webhooks of rooms by the API: who sets them, what is refused, what is shown, and what is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.access import MemberRole
from foliot.domain.delivery import Answered
from foliot.services.messaging import courier
from foliot.services.messaging.courier import CourierCapacity
from foliot.testing.fixtures import a_vault
from tests.web.conftest import ApiHarness, problems
from tests.web.test_rooms import agent, post, room

pytestmark = pytest.mark.anyio
URL = "https://example.test/hook?token=t0ken"
FREE = CourierCapacity(40, 10, 4)


async def change(api: ApiHarness, room_id: str, webhook: Any, **more: Any) -> Any:
    return await api.request("PATCH", f"/rooms/{room_id}", json={"webhook": webhook}, **more)


async def deliveries(api: ApiHarness, room_id: str, **params: Any) -> list[dict[str, Any]]:
    answer = await api.request("GET", f"/rooms/{room_id}/deliveries", role="viewer", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def answered(api: ApiHarness, status: int) -> None:
    """Every message that is due is sent, and this is what its receiver says."""
    came = await courier.take(api.database, FREE, a_vault())
    for parcel in came.parcels:
        await courier.record(api.database, parcel.taken, Answered(status, f"The receiver answered {status}."))


async def test_a_webhook_is_set_with_the_room_changed_in_part_and_removed(api: ApiHarness) -> None:
    await api.request("POST", "/secrets", role="admin", json={"name": "hook", "value": "whsec_x"})
    made = await room(api, webhook={"url": URL, "secret": {"secret": "hook"}})
    assert (made["webhook"]["url"], made["webhook"]["secret"]) == (URL, {"secret": "hook"})
    assert (made["webhook"]["delivered_seq"], made["webhook"]["stopped_at"]) == (None, None)
    moved = (await change(api, made["id"], {"url": "https://example.test/new"})).json()["webhook"]
    assert (moved["url"], moved["secret"]) == ("https://example.test/new", {"secret": "hook"})
    unsigned = (await change(api, made["id"], {"secret": None})).json()["webhook"]
    assert (unsigned["url"], unsigned["secret"]) == ("https://example.test/new", None)
    renamed = await api.request("PATCH", f"/rooms/{made['id']}", json={"name": "other"})
    assert renamed.json()["webhook"]["url"] == "https://example.test/new"
    assert (await change(api, made["id"], None)).json()["webhook"] is None
    reported = (await api.request("GET", "/audit", role="admin", params={"action": "room.changed"})).json()[
        "items"
    ]
    assert {str(each["after"]["webhook"]) for each in reported} == {
        "None",
        "{'url': 'https://example.test/new', 'secret': 'hook'}",
        "{'url': 'https://example.test/new', 'secret': None}",
    }


@pytest.mark.parametrize(
    ("webhook", "pointer", "words"),
    [
        ({"url": "ftp://example.test"}, "/webhook/url", "must be an address"),
        ({"url": "http://169.254.169.254/latest"}, "/webhook/url", "may not be called from here"),
        ({"url": "http://127.1/"}, "/webhook/url", ""),
        ({"url": "https://me:pw@example.test/"}, "/webhook/url", "user or a password"),
        ({"url": URL, "secret": {"secret": "nowhere"}}, "/webhook/secret", 'no secret "nowhere"'),
        ({"url": URL, "secret": "plain"}, "/webhook/secret", ""),
        ({"secret": None}, "/webhook/url", ""),
    ],
)
async def test_a_webhook_that_could_never_be_sent_is_refused(
    shared_api: ApiHarness, webhook: dict[str, Any], pointer: str, words: str
) -> None:
    answer = await shared_api.request("POST", "/rooms", json={"name": "x", "webhook": webhook})
    assert answer.status_code == 422
    assert words in problems(answer)[pointer]


async def test_a_change_needs_an_address_where_there_is_none(api: ApiHarness) -> None:
    made = await room(api)
    answer = await change(api, made["id"], {"secret": None})
    assert problems(answer) == {"/webhook/url": "A webhook needs an address."}


async def test_only_editors_set_webhooks_and_agents_neither_set_nor_see_them(api: ApiHarness) -> None:
    ada = await agent(api, "ada", MemberRole.ADMIN)
    made = await room(api, agents=[ada], webhook={"url": URL})
    for role in ("viewer", "operator", "ada"):
        assert (await change(api, made["id"], {"url": URL}, role=role)).status_code == 403
    answer = await api.request("POST", "/rooms", role="ada", json={"name": "mine", "webhook": {"url": URL}})
    assert answer.status_code == 403
    assert (await api.request("GET", f"/rooms/{made['id']}", role="ada")).json()["webhook"] is None
    assert (await api.request("GET", f"/rooms/{made['id']}/deliveries", role="ada")).status_code == 403
    again = await api.request("POST", f"/rooms/{made['id']}/redeliver", role="ada", json={})
    assert again.status_code == 403


async def test_what_is_written_waits_for_the_courier_which_gets_a_hint(api: ApiHarness) -> None:
    silent, made = await room(api), await room(api, webhook={"url": URL})
    await post(api, silent["id"], "nobody hears")
    assert "outbox" not in api.hints
    await post(api, made["id"], "one")
    await post(api, made["id"], "two")
    assert "outbox" in api.hints
    two, one = await deliveries(api, made["id"])
    assert (one["seq"], one["state"], one["attempts"]) == (1, "waiting", 0)
    assert one["next_attempt_at"] is not None
    assert (two["state"], two["next_attempt_at"]) == ("waiting", None)  # behind the first
    page = (await api.request("GET", f"/rooms/{made['id']}/deliveries", params={"limit": 1})).json()
    assert [each["seq"] for each in page["items"]] == [2]
    assert [each["seq"] for each in await deliveries(api, made["id"], cursor=page["next_cursor"])] == [1]


async def test_what_was_given_up_is_shown_and_sent_again(api: ApiHarness) -> None:
    made = await room(api, webhook={"url": URL})
    await post(api, made["id"], "one")
    await post(api, made["id"], "two")
    await answered(api, 410)
    shown = (await api.request("GET", f"/rooms/{made['id']}")).json()["webhook"]
    assert shown["last_error"] == "The receiver answered 410."
    assert shown["stopped_at"] == shown["failing_since"] is not None
    dead = await deliveries(api, made["id"], state="dead")
    assert [(each["seq"], each["last_status"]) for each in dead] == [(2, None), (1, 410)]
    path = f"/rooms/{made['id']}/redeliver"
    assert (await api.request("POST", path, role="operator", json={})).status_code == 409
    await change(api, made["id"], {"url": URL})
    again = await api.request("POST", path, role="operator", json={"deliveries": [dead[1]["id"]]})
    assert again.json() == {"redelivered": 1}
    await answered(api, 200)
    assert (await api.request("GET", f"/rooms/{made['id']}")).json()["webhook"]["delivered_seq"] == 1
    assert (await api.request("POST", path, role="operator", json={})).json() == {"redelivered": 1}
    assert (await api.request("POST", path, who="globex", json={})).status_code == 404
    assert (await api.request("GET", f"/rooms/{made['id']}/deliveries", who="globex")).status_code == 404


async def test_rooms_and_messages_are_bounded_where_the_operator_says(api: ApiHarness) -> None:
    quotas = {"quotas": {"rooms": 2, "room_messages": 3}}
    assert (await api.request("PATCH", "/workspaces/acme", who="system", json=quotas)).status_code == 200
    made = await room(api)
    await room(api)
    refused = await api.request("POST", "/rooms", json={"name": "one too many"})
    assert (refused.status_code, refused.json()["code"]) == (422, "quota_exceeded")
    assert refused.json()["quota"] == {"name": "rooms", "limit": 2, "used": 2}
    for text in ("one", "two", "three"):
        await post(api, made["id"], text)
    refused = await api.request("POST", f"/rooms/{made['id']}/messages", json={"text": "four"})
    assert refused.json()["quota"] == {"name": "room_messages", "limit": 3, "used": 3}
    assert (await api.request("GET", f"/rooms/{made['id']}")).json()["last_seq"] == 3
