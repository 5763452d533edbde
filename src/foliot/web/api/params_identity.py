"""What routes about identity share: saying that who may enter has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from foliot.services.hints import Hint


def _changed(request: Request) -> Callable[[], None]:
    """To be called after the commit: this node asks the database again at once, the others when they hear of it."""

    def tell() -> None:
        request.app.state.door.forget()
        request.app.state.announce(Hint.KEYS)

    return tell


Changed = Annotated[Callable[[], None], Depends(_changed)]
