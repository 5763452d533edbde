# Made from sdk/asynchronous by ./dev format; edit it there.
"""The one door to the server: sends, repeats where that is safe, and turns refusals into errors."""

from __future__ import annotations

from functools import partial

import httpx2

from foliot import __version__
from foliot.sdk.connection import Place
from foliot.sdk.errors import unreachable
from foliot.sdk.request import Ask, request_of, wait_before_retry
from foliot.sdk.response import Answer, check, read
from foliot.sdk.sleep import nap
from foliot.sdk.tls import trusted_by

CONNECT_WITHIN = 5.0  # seconds
SILENCE = 60.0  # seconds after which a stream without so much as a sign of life counts as broken


class Http:
    def __init__(self, place: Place, *, workspace: str | None, timeout: float, retries: int) -> None:
        self.url = place.url
        self._retries = retries
        headers = {"Authorization": f"Bearer {place.key}", "User-Agent": f"foliot-python/{__version__}"}
        if workspace is not None:
            headers["Foliot-Workspace"] = workspace
        self._patient = httpx2.Timeout(timeout, connect=min(timeout, CONNECT_WITHIN), read=SILENCE)
        self._client = httpx2.Client(
            base_url=place.url,
            headers=headers,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECT_WITHIN)),
            verify=trusted_by(place) if place.url.startswith("https:") else True,
            trust_env=not place.is_local,  # no proxy stands between us and our own machine
        )

    def ask(self, shape: type[Answer], ask: Ask) -> Answer:
        return read(shape, self.send(ask))

    def tell(self, ask: Ask) -> None:
        """For what answers with nothing."""
        check(self.send(ask))

    def fetch(self, ask: Ask) -> bytes:
        """For what answers with a file."""
        came = self.send(ask)
        check(came)
        return came.content

    def send(self, ask: Ask) -> httpx2.Response:
        attempt = 0
        while True:
            attempt += 1
            came: httpx2.Response | httpx2.TransportError
            try:
                came = self._client.send(request_of(ask, self._client.build_request))
            except httpx2.TransportError as error:
                came = error
            wait = wait_before_retry(ask, attempt, came) if attempt <= self._retries else None
            if wait is None:
                return self._answer(came)
            nap(wait)

    def open(self, ask: Ask) -> httpx2.Response:
        """The answer before its body: for streams, which end only when they are closed."""
        build = partial(self._client.build_request, timeout=self._patient)
        return self._client.send(request_of(ask, build), stream=True)

    def close(self) -> None:
        self._client.close()

    def _answer(self, came: httpx2.Response | httpx2.TransportError) -> httpx2.Response:
        if isinstance(came, httpx2.Response):
            return came
        raise unreachable(self.url, came) from came
