"""What the configuration of `http` looks like."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from foliot.domain.addresses import networks
from foliot.egress.client import refusal as address_refusal
from foliot.egress.url import NotATarget, read_target
from foliot.handlers.configs import SECRET, HeaderName, Text, is_secret
from foliot.handlers.placeholders import checked
from foliot.wire.durations import Duration
from foliot.wire.shape import Shape, refusal

# They say where the request ends and whom it is for: two readers of one request must not differ about that.
OURS = frozenset(
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
EGRESS_ALLOW = "egress_allow"  # in the context of a validation: the networks that this node may reach
MOST_SECRETS = 3  # to sign with, while one takes the place of another


def _address(value: Any, info: ValidationInfo) -> Any:
    """What no worker could call is refused here. Where a name leads is known only when it is called."""
    if not isinstance(value, str):
        return value
    try:
        target = read_target(value)
    except NotATarget as error:
        raise refusal(error.code, error.message, error.hint) from None
    context = info.context or {}
    if target.address is not None and EGRESS_ALLOW in context:
        allowed = networks(tuple(context[EGRESS_ALLOW]))
        sentence = address_refusal(target.host, [target.address], allowed)
        if sentence is not None:
            what, _, hint = sentence.partition(". ")
            raise refusal("address_refused", f"{what}.", hint)
    return value


def _not_ours(value: str) -> str:
    if value.lower() in OURS:
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


class HttpConfig(Shape):
    url: Annotated[Text, AfterValidator(_address), AfterValidator(checked)] = Field(
        examples=["https://example.test/hook"]
    )
    method: str = Field(default="POST", pattern=r"^[A-Za-z]{1,20}$")
    headers: dict[
        Annotated[HeaderName, AfterValidator(_not_ours)],
        Annotated[Text, AfterValidator(_one_line), AfterValidator(checked)],
    ] = Field(default={}, max_length=100)
    body: Annotated[Any, AfterValidator(checked)] = Field(
        default=None,
        description="Text as it is, anything else as JSON; the run's input where left out. "
        "In texts, `{{run.id}}` and the like are filled in.",
    )
    success: list[Annotated[int, Field(ge=100, le=599)]] = Field(
        default=[], max_length=100, description="Codes that count as success; any 2xx where left out."
    )
    timeout: Duration | None = Field(
        default=None, description="For the whole exchange; the job's own timeout holds beside it."
    )
    sign: Annotated[Any, BeforeValidator(_secrets), WithJsonSchema(_SECRETS)] = Field(
        default=None, description="Secrets to sign each request with, by Standard Webhooks."
    )
