"""`http`: send one request; success is an answer with a 2xx code other than 202, or one of `success`.

`{"url", "method" (POST), "headers", "body" (the run's input), "success" ([200, …]), "success_when", "timeout", "sign"}`. A 202 only
says that the work is accepted: with `success_when` the handler polls its Location until the work has ended. Redirects are not
followed: they could lead to an address that nobody approved. The answer is stored up to 64 KiB, as it came.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationInfo, WithJsonSchema

from foliot import __version__
from foliot.clock import Clock, SystemClock
from foliot.domain.addresses import networks
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.domain.signatures import InvalidSigningSecret, signature_headers
from foliot.egress.client import (
    BUSY,
    KEPT,
    AddressRefused,
    Egress,
    HttpAnswer,
    NoAnswer,
    OutgoingRequest,
    reason_of,
    retry_after,
    retry_wait,
)
from foliot.egress.client import refusal as address_refusal
from foliot.egress.url import HttpTarget, InvalidTarget, read_target
from foliot.handlers.config_fields import SECRET, Text, is_secret
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.placeholders import (
    Values,
    check_names,
    fill,
    fill_text,
    needed_values,
)
from foliot.handlers.registry import Assignment, HandlerResult, failed, succeeded
from foliot.wire.amounts import MOST_UNITS, read_usage
from foliot.wire.durations import Duration, read_duration, write_duration
from foliot.wire.shape import Shape, described, refusal
from foliot.wire.usage import Unit

# These frame and route the request: two readers of one request must not differ about them.
RESERVED_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# Answers about the request itself: sent again as it is, it gets them again. 401, 403, 404 and 409 may be mended at the receiver.
NEVER_BETTER = frozenset({400, 405, 406, 410, 411, 413, 414, 415, 422, 431, 501, 505})
EGRESS_ALLOW = "egress_allow"  # in the validation context: the networks that this node may reach
HeaderName = Annotated[
    str,
    StringConstraints(
        pattern=described(
            r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            "The name of a header has only letters, digits and signs such as -, and no blanks.",
        ),
        max_length=200,
    ),
]
MOST_SECRETS = 3  # to sign with, while one replaces another


def check_address(value: Any, info: ValidationInfo) -> Any:
    """Refuse an address that no worker could call. A name is resolved only when it is called."""
    if not isinstance(value, str):
        return value
    try:
        target = read_target(value)
    except InvalidTarget as error:
        raise refusal(error.code, error.message, error.hint) from None
    context = info.context or {}
    if target.address is not None and EGRESS_ALLOW in context:
        allowed = networks(tuple(context[EGRESS_ALLOW]))
        refused = address_refusal(target.host, [target.address], allowed)
        if refused is not None:
            what, _, hint = refused.partition(". ")
            raise refusal("address_refused", f"{what}.", hint)
    return value


def _is_reserved(name: str) -> bool:
    """Return whether Foliot sets this header: receivers trust `Foliot-Run-Id` and the like."""
    return name.lower() in RESERVED_HEADERS or name.lower().startswith("foliot-")


def _not_reserved(value: str) -> str:
    if _is_reserved(value):
        raise refusal("header", f"The header {value} is set by Foliot.", "Leave it out.")
    return value


def _one_line(value: Any) -> Any:
    if isinstance(value, str) and any(each in value for each in "\r\n\0"):
        raise refusal("header", "The value of a header is one line.", "Take out its line breaks.")
    return value


def _secrets(value: Any) -> Any:
    if value is None:
        return None
    several = value if isinstance(value, list) else [value]
    if not 1 <= len(several) <= MOST_SECRETS or not all(map(is_secret, several)):
        raise refusal(
            "secret",
            "This must be the name of a secret, or a list of up to three.",
            "Names of secrets stand in an object, under secret.",
        )
    return value


_SECRETS = {"anyOf": [SECRET, {"type": "array", "items": SECRET, "minItems": 1, "maxItems": MOST_SECRETS}]}


def _known_method(value: str) -> str:
    """Refuse what looks like a slip of the keyboard; less common methods such as PURGE pass."""
    if value.upper() not in METHODS and (near := get_close_matches(value.upper(), METHODS, 1, 0.66)):
        raise refusal("method", f'"{value}" is not an HTTP method.', f"Did you mean {near[0]}?")
    return value


class SuccessWhen(Shape):
    """How to ask for the end of work that was accepted with 202 and a Location."""

    every: Duration = Field(default=timedelta(seconds=5), description="Pause between two questions.")
    field: str | None = Field(
        default=None,
        max_length=200,
        description="Field of the JSON answer, with dots between its parts; without it, the first 2xx other than 202 is success.",
        examples=["job.state"],
    )
    equals: list[str | int | float | bool] = Field(
        default=["succeeded", "success", "completed", "done"],
        max_length=20,
        description="Values that mean success.",
    )
    fails: list[str | int | float | bool] = Field(
        default=["failed", "error", "cancelled"], max_length=20, description="Values that mean failure."
    )


class HttpConfig(Shape):
    url: Annotated[Text, AfterValidator(check_address), AfterValidator(check_names)] = Field(
        examples=["https://example.test/hook"]
    )
    method: Annotated[str, AfterValidator(_known_method)] = Field(
        default="POST",
        pattern=described(r"^[A-Za-z]{1,20}$", "A method is a word of letters, such as GET."),
    )
    headers: dict[
        Annotated[HeaderName, AfterValidator(_not_reserved)],
        Annotated[Text, AfterValidator(_one_line), AfterValidator(check_names)],
    ] = Field(default={}, max_length=100)
    body: Annotated[Any, AfterValidator(check_names)] = Field(
        default=None,
        description="Text as it is, anything else as JSON; the run's input where left out. "
        "In texts, `{{run.id}}` and the like are filled in.",
    )
    success: list[Annotated[int, Field(ge=100, le=599)]] = Field(
        default=[], max_length=100, description="Codes that count as success; any 2xx but 202 where left out."
    )
    success_when: SuccessWhen | None = Field(
        default=None, description="Ask at the Location of a 202 until the work has ended."
    )
    timeout: Duration | None = Field(
        default=None, description="For the whole exchange; the job's own timeout holds beside it."
    )
    usage: dict[Unit, Annotated[str, StringConstraints(min_length=1, max_length=200)]] = Field(
        default={},
        max_length=MOST_UNITS,
        description="What the answer says was used: units, and the field of the JSON answer that has the amount of each, with dots "
        "between its parts.",
        examples=[{"tokens": "usage.total_tokens"}],
    )
    sign: Annotated[Any, BeforeValidator(_secrets), WithJsonSchema(_SECRETS)] = Field(
        default=None, description="Secrets to sign each request with, by Standard Webhooks."
    )


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


class InvalidRequest(Exception):
    """The configuration makes no request: an older version wrote it, or a secret has a wrong value."""


class HttpHandler:
    description: ClassVar = "Send one HTTP request; an answer with a code of success is success."
    config_shape: ClassVar = HttpConfig

    def __init__(self, egress: Egress | None = None, clock: Clock | None = None) -> None:
        self._egress = egress or Egress()
        self._clock = clock or SystemClock()

    @classmethod
    def from_deps(cls, deps: HandlerDeps) -> HttpHandler:
        return cls(Egress(networks(deps.egress_policy.egress_allow)))

    async def run(self, assignment: Assignment) -> HandlerResult:
        result = await self._exchange(assignment)
        # A success is in the output; a log line for each would only cost.
        if isinstance(result.outcome, Failed):
            assignment.ctx.write(
                "system", f"{_request_line(assignment.config)}: {result.outcome.error.message}"
            )
        return result

    async def close(self) -> None:
        self._egress.close()

    async def _exchange(self, assignment: Assignment) -> HandlerResult:
        config, now = assignment.config, self._clock.now()
        try:
            within = read_duration(config["timeout"]) if config.get("timeout") else None
            outgoing = build_request(assignment, now)
        except InvalidTarget as error:
            return failed(error.code, f"{error.message} {error.hint}", permanent=True)
        except (InvalidRequest, InvalidSigningSecret, ValueError) as error:
            return failed("config_invalid", str(error), permanent=True)
        answer = await send_request(self._egress, outgoing, within)
        if isinstance(answer, HandlerResult):
            return answer
        report_usage(assignment, answer)
        success = config.get("success") or ()
        if answer.status == ACCEPTED and ACCEPTED not in success:
            if config.get("success_when") is None:
                return _only_accepted(answer)
            return await self._ask_for_end(outgoing, answer, assignment, within)
        return classify_answer(answer, success, self._clock.now())

    async def _ask_for_end(
        self, first: OutgoingRequest, answer: HttpAnswer, assignment: Assignment, within: timedelta | None
    ) -> HandlerResult:
        """Ask at the Location until the work has ended. The deadline of the attempt ends the questions."""
        rule = SuccessWhen.model_validate(assignment.config["success_when"])
        try:
            target = _location(first.target, answer.headers.get("location", ""))
        except InvalidTarget as error:
            return failed(
                "location_invalid", f"{error.message} {error.hint}", _output(answer), permanent=True
            )
        keep = tuple(each for each in first.headers if each[0] not in _OF_THE_BODY)
        question = OutgoingRequest("GET", target, keep, None, first.workspace)
        assignment.ctx.write("system", f"The target accepted the work; asking {target} for its end.")
        wait = retry_wait(answer, self._clock.now())
        while True:
            await asyncio.sleep(max(rule.every, wait or rule.every).total_seconds())
            found = await send_request(self._egress, question, within)
            if isinstance(found, HandlerResult):
                if isinstance(found.outcome, Failed) and found.outcome.permanent:
                    return found
                wait = None  # the work goes on, whether the question was answered or not
                continue
            wait = retry_wait(found, self._clock.now())
            if (ended := _end_of_work(found, rule, self._clock.now())) is not None:
                report_usage(assignment, found)
                return ended


async def send_request(
    egress: Egress, outgoing: OutgoingRequest, within: timedelta | None, keep: int = KEPT
) -> HttpAnswer | HandlerResult:
    """Return the answer, or the failure of the attempt."""
    try:
        if within is None:
            return await egress.send(outgoing, keep)
        async with asyncio.timeout(within.total_seconds()) as deadline:
            return await egress.send(outgoing, keep)
    except AddressRefused as error:
        return failed(error.code, error.public, permanent=True)
    except NoAnswer as error:
        return failed(error.code, str(error), permanent=error.code == "http_invalid")
    except TimeoutError:
        if within is None or not deadline.expired():
            raise
        return failed("http_timeout", f"The target did not answer within {write_duration(within)}.")


ACCEPTED = 202
_USER_AGENT = f"foliot/{__version__}"
_OF_THE_BODY = frozenset({"content-type", "webhook-id", "webhook-timestamp", "webhook-signature"})


def _location(sent_to: HttpTarget, location: str) -> HttpTarget:
    """Read the Location of an answer. Another origin is refused: the headers of the job are for the target that it names."""
    if not location:
        raise InvalidTarget(
            "The target answered 202 without a Location.", "Take success_when out of the job."
        )
    if location.startswith("/") and not location.startswith("//"):
        return replace(sent_to, path=read_target(f"{sent_to}{location}").path)
    found = read_target(location)
    if (found.scheme, found.host, found.port) != (sent_to.scheme, sent_to.host, sent_to.port):
        raise InvalidTarget(
            f"The Location leads to another target, {found}.", "Only the job's own target is asked."
        )
    return found


def _end_of_work(answer: HttpAnswer, rule: SuccessWhen, now: datetime) -> HandlerResult | None:
    """Return the end of accepted work, or None while it goes on."""
    if answer.status == ACCEPTED or answer.status in BUSY:
        return None
    if not 200 <= answer.status < 300:
        return classify_answer(answer, (), now)
    if rule.field is None:
        return succeeded(_output(answer))
    value = _field(answer.body, rule.field)
    if value in rule.equals:
        return succeeded(_output(answer))
    if value in rule.fails:
        message = f'The target says of the accepted work: {rule.field} is "{value}".'
        return failed("work_failed", message, _output(answer))
    return None


def _field(body: bytes, path: str) -> Any:
    try:
        value = json.loads(body)
        for part in path.split("."):
            value = value[part]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return value


def report_usage(assignment: Assignment, answer: HttpAnswer) -> None:
    """Report the amounts that the job's `usage` finds in the answer. What is no amount is logged: the work is done all the same."""
    for unit, path in (assignment.config.get("usage") or {}).items():
        value = _field(answer.body, path)
        if value is None:
            continue
        try:
            assignment.ctx.spend(read_usage({unit: value}))
        except ValueError as error:
            assignment.ctx.write("system", f"The usage at {path} was not taken: {error}")


def _only_accepted(answer: HttpAnswer) -> HandlerResult:
    """Refuse to call it a success. It is not sent again: the target may be at work."""
    return failed(
        "only_accepted",
        "The target answered 202: it accepted the work, but did not say whether it was done. "
        "Add 202 to success if that is enough, or wait for the end with success_when.",
        _output(answer),
        permanent=True,
    )


def build_request(assignment: Assignment, now: datetime) -> OutgoingRequest:
    """Build the request. All attempts of a run send the same id: a target that supports Idempotency-Key does the work once."""
    config = assignment.config
    values = needed_values(config, assignment)
    target = _target(config, values)
    content = _content(assignment, values)
    headers = {
        "user-agent": _USER_AGENT,
        "accept": "*/*",
        "accept-encoding": "identity",  # a compressed answer could expand to any size
        "idempotency-key": assignment.ctx.run_id,
        "foliot-run-id": assignment.ctx.run_id,
        "foliot-attempt": str(assignment.ctx.attempt),
        "foliot-fence": str(assignment.ctx.fence),
        "foliot-planned-for": assignment.ctx.planned_for.isoformat(),
    }
    if content is not None and not isinstance(config.get("body"), str):
        headers["content-type"] = "application/json"
    for name, value in (config.get("headers") or {}).items():
        headers[_header_name(name)] = _header_value(name, fill_text(str(value), values))
    if config.get("sign"):
        secrets = config["sign"] if isinstance(config["sign"], list) else [config["sign"]]
        headers |= signature_headers(
            [str(each) for each in secrets], assignment.ctx.run_id, now, content or b""
        )
    return OutgoingRequest(
        _method(config), target, tuple(headers.items()), content, assignment.ctx.workspace_id
    )


def _method(config: Mapping[str, Any]) -> str:
    return str(config.get("method", "POST")).upper()


def _target(config: Mapping[str, Any], values: Values) -> HttpTarget:
    """Fill in the path. Host and port are never filled in: the job's author named them."""
    target = read_target(str(config.get("url", "")))
    if not values:
        return target
    return replace(target, path=fill_text(target.path, values, lambda text: quote(text, safe="")))


def _request_line(config: Mapping[str, Any]) -> str:
    """Return method and target without the parts of the address that may be secret."""
    try:
        return f"{_method(config)} {read_target(str(config.get('url', '')))}"
    except InvalidTarget:
        return _method(config)


def _content(assignment: Assignment, values: Values) -> bytes | None:
    config = assignment.config
    if "body" in config:
        body = config["body"]
        text = fill_text(body, values) if isinstance(body, str) else json.dumps(fill(body, values))
        return text.encode()
    return None if _method(config) in WITHOUT_BODY else json.dumps(dict(assignment.input)).encode()


def _header_name(name: str) -> str:
    if _is_reserved(name):
        raise InvalidRequest(f"The header {name} is set by Foliot; take it out of config.headers.")
    return name.lower()


def _header_value(name: str, value: str) -> str:
    line = value.strip()  # secrets are often stored with the line break of their file
    if any(each in line for each in "\r\n\0"):
        raise InvalidRequest(f"The value of the header {name} is more than one line.")
    return line


def classify_answer(answer: HttpAnswer, success: Any, now: datetime) -> HandlerResult:
    """Return what an answer means for the attempt: success, a failure that a retry may mend, or one that none would."""
    code, output = answer.status, _output(answer)
    if code in success if success else 200 <= code < 300:
        return succeeded(output)
    message = f"The target answered {code} {output['reason']}".rstrip() + "."
    wait = retry_after(answer, now)
    if wait is not None:
        message += f" It asks for no other request within {write_duration(wait)}."
    permanent = code in NEVER_BETTER and wait is None
    if permanent:
        message += " The same request would get the same answer, so it is not retried."
    return HandlerResult(Failed(RunError("http_status", message), permanent, wait), output)


def _output(answer: HttpAnswer) -> dict[str, Any]:
    return {
        "status": answer.status,
        "reason": reason_of(answer),
        "content_type": answer.headers.get("content-type", ""),
        "body": answer.body.decode("utf-8", "replace").replace("\0", "\ufffd"),
        "truncated": answer.truncated,
    }
