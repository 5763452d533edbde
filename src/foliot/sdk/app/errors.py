"""What is wrong with an app, told where it is written."""

from __future__ import annotations


class Misdefined(Exception):
    """The code of an app says something that cannot be; `hint` says what to write instead."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{message} {hint}" if hint else message)
        self.message = message
        self.hint = hint
