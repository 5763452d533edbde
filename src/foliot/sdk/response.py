"""Answers into shapes. Requests are closed against unknown fields; answers are not, since the server may be newer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import httpx2
from pydantic import ValidationError

from foliot.sdk.errors import refused, unreadable
from foliot.wire.shape import Shape, pointer

Answer = TypeVar("Answer", bound=Shape)
Result = TypeVar("Result")
Reader = Callable[[httpx2.Response], Result]


def read(shape: type[Answer], answer: httpx2.Response) -> Answer:
    """Raises what the server refused; and Unreadable for what is not the shape."""
    check(answer)
    return read_text(shape, answer.content, str(answer.url))


def read_text(shape: type[Answer], text: str | bytes, url: str) -> Answer:
    """JSON that came from `url`."""
    try:
        # Shapes are strict and closed for what people send; neither serves anybody here.
        return shape.model_validate_json(text, extra="ignore", strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = pointer(first["loc"]) or "the whole"
        raise unreadable(url, f"{where}: {first['msg']}") from None


def reader(shape: type[Answer]) -> Reader[Answer]:
    """Return a function that reads responses of this shape. `check` is the one for responses without a body."""
    return partial(read, shape)


def check(answer: httpx2.Response) -> None:
    if not answer.is_success:
        raise refused(answer)
