"""Read responses into shapes. Unknown fields are ignored, since the server may be newer than the client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from foliot.sdk.errors import error_from_response, unreadable_error
from foliot.wire.shape import Page, Shape, pointer

if TYPE_CHECKING:
    import httpx2

    from foliot.wire.runs import RunOut

Answered = TypeVar("Answered", bound=Shape)
Result = TypeVar("Result")
Reader = Callable[["httpx2.Response"], Result]
# A function from a cursor to the page that begins there; the synchronous client uses the second.
AsyncPageFetcher = Callable[[str | None], Awaitable[Page[Answered]]]
PageFetcher = Callable[[str | None], Page[Answered]]


def read_response(shape: type[Answered], answer: httpx2.Response) -> Answered:
    """Raise the error that the server sent, or Unreadable if the body does not have the shape."""
    raise_for_error(answer)
    return parse_json(shape, answer.content, str(answer.url))


def parse_json(shape: type[Answered], text: str | bytes, url: str) -> Answered:
    """Parse JSON received from `url`."""
    try:
        # Shapes are strict about requests; responses are read leniently.
        return shape.model_validate_json(text, extra="ignore", strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = pointer(first["loc"]) or "the body"
        raise unreadable_error(url, f"{where}: {first['msg']}") from None


def reader(shape: type[Answered]) -> Reader[Answered]:
    """Return a function that reads responses of this shape. `raise_for_error` is the one for responses without a body."""
    return partial(read_response, shape)


def read_run(answer: httpx2.Response) -> RunOut:
    """Read a run. Its shapes are imported when there is one."""
    from foliot.wire.runs import RunOut  # noqa: PLC0415

    return read_response(RunOut, answer)


def raise_for_error(answer: httpx2.Response) -> None:
    if not answer.is_success:
        raise error_from_response(answer)
