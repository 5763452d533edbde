"""`http`: one request; success is an answer with a 2xx code, or one of `success`.

`{"url", "method" (POST), "headers", "body" (the run's input), "success" ([200, …]), "timeout", "sign"}`. Redirects are not
followed, since they would lead past whoever approved the address. The answer is kept up to 64 KiB, as it came.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import quote

from foliot import __version__
from foliot.clock import Clock, SystemClock
from foliot.domain.addresses import networks
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.egress.client import AddressRefused, Answer, Egress, NoAnswer, Outgoing
from foliot.egress.responses import asked_to_wait, reason_of
from foliot.egress.signatures import UnfitSecret, signature_headers
from foliot.egress.url import NotATarget, Target, read_target
from foliot.handlers.dependencies import Means
from foliot.handlers.http_config import OURS, HttpConfig
from foliot.handlers.placeholders import Facts, check_growth, facts_of, filled, filled_text
from foliot.handlers.registry import Assignment, Done, failed, succeeded
from foliot.wire.durations import read_duration, write_duration

WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


class Unfit(Exception):
    """This configuration makes no request. It was written by an older version, or a secret is not what it should be."""


class HttpHandler:
    description: ClassVar = "Send one HTTP request; an answer with a code of success is success."
    config_shape: ClassVar = HttpConfig

    def __init__(self, egress: Egress | None = None, clock: Clock | None = None) -> None:
        self._egress = egress or Egress()
        self._clock = clock or SystemClock()

    @classmethod
    def made_with(cls, means: Means) -> HttpHandler:
        return cls(Egress(networks(means.reach.egress_allow)))

    async def run(self, assignment: Assignment) -> Done:
        done = await self._exchange(assignment)
        # What went well is in the output; a line for each would only cost.
        if isinstance(done.outcome, Failed):
            assignment.ctx.write("system", f"{_named(assignment.config)}: {done.outcome.error.message}")
        return done

    async def close(self) -> None:
        self._egress.close()

    async def _exchange(self, assignment: Assignment) -> Done:
        config, now = assignment.config, self._clock.now()
        try:
            within = read_duration(config["timeout"]) if config.get("timeout") else None
            outgoing = request_of(assignment, now)
        except NotATarget as error:
            return failed(error.code, f"{error.message} {error.hint}", permanent=True)
        except (Unfit, UnfitSecret, ValueError) as error:
            return failed("config_invalid", str(error), permanent=True)
        try:
            async with asyncio.timeout(None if within is None else within.total_seconds()) as deadline:
                answer = await self._egress.send(outgoing)
        except AddressRefused as error:
            return failed(error.code, str(error), permanent=True)
        except NoAnswer as error:
            return failed(error.code, str(error), permanent=error.code == "http_invalid")
        except TimeoutError:
            if within is None or not deadline.expired():
                raise
            return failed("http_timeout", f"The target did not answer within {write_duration(within)}.")
        return _done(answer, config.get("success") or (), self._clock.now())


def request_of(assignment: Assignment, now: datetime) -> Outgoing:
    """What is sent. The run's id is the same for all its attempts: a target that knows Idempotency-Key does the work once."""
    config, facts = assignment.config, facts_of(assignment)
    check_growth(config, facts)
    target = _target(config, facts)
    content = _content(assignment, facts)
    headers = {
        "user-agent": f"foliot/{__version__}",
        "accept": "*/*",
        "accept-encoding": "identity",  # what is packed could unfold to any size
        "connection": "close",
        "idempotency-key": assignment.ctx.run_id,
        "foliot-run-id": assignment.ctx.run_id,
        "foliot-attempt": str(assignment.ctx.attempt),
        "foliot-fence": str(assignment.ctx.fence),
        "foliot-planned-for": assignment.ctx.planned_for.isoformat(),
    }
    if content is not None and not isinstance(config.get("body"), str):
        headers["content-type"] = "application/json"
    for name, value in (config.get("headers") or {}).items():
        headers[_header_name(name)] = _header_value(name, filled_text(str(value), facts))
    if config.get("sign"):
        secrets = config["sign"] if isinstance(config["sign"], list) else [config["sign"]]
        headers |= signature_headers(
            [str(each) for each in secrets], assignment.ctx.run_id, now, content or b""
        )
    return Outgoing(_method(config), target, tuple(headers.items()), content)


def _method(config: Mapping[str, Any]) -> str:
    return str(config.get("method", "POST")).upper()


def _target(config: Mapping[str, Any], facts: Facts) -> Target:
    """Host and port are never filled in: who wrote the job has named them."""
    target = read_target(str(config.get("url", "")))
    return replace(target, path=filled_text(target.path, facts, lambda text: quote(text, safe="")))


def _named(config: Mapping[str, Any]) -> str:
    """Without what may be secret in an address."""
    try:
        return f"{_method(config)} {read_target(str(config.get('url', '')))}"
    except NotATarget:
        return _method(config)


def _content(assignment: Assignment, facts: Facts) -> bytes | None:
    config = assignment.config
    if "body" in config:
        body = config["body"]
        text = filled_text(body, facts) if isinstance(body, str) else json.dumps(filled(body, facts))
        return text.encode()
    return None if _method(config) in WITHOUT_BODY else json.dumps(dict(assignment.input)).encode()


def _header_name(name: str) -> str:
    if name.lower() in OURS:
        raise Unfit(f"The header {name} is set by Foliot; take it out of config.headers.")
    return name.lower()


def _header_value(name: str, value: str) -> str:
    line = value.strip()  # secrets are often stored with the line break of their file
    if any(each in line for each in "\r\n\0"):
        raise Unfit(f"The value of the header {name} is more than one line.")
    return line


def _done(answer: Answer, success: Any, now: datetime) -> Done:
    code = answer.status
    reason = reason_of(answer)
    output = {
        "status": code,
        "reason": reason,
        "content_type": answer.headers.get("content-type", ""),
        "body": answer.body.decode("utf-8", "replace").replace("\0", "\ufffd"),
        "truncated": answer.truncated,
    }
    if code in success if success else 200 <= code < 300:
        return succeeded(output)
    sentence = f"The target answered {code} {reason}".rstrip() + "."
    asked = asked_to_wait(answer, now)
    if asked is not None:
        sentence += f" It asks to be left alone for {write_duration(asked)}."
    return Done(Failed(RunError("http_status", sentence), not_before=asked), output)
