"""`http`: one request; success is an answer with a 2xx code, or one of `success`.

`{"url", "method" (POST), "headers", "body" (the run's input), "success" ([200, …])}`. Redirects are not followed, since they
would lead past whoever approved the address. The answer is kept up to 64 KiB, as it came.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2

from foliot import __version__
from foliot.domain.outcomes import Failed
from foliot.handlers.configs import HttpConfig
from foliot.handlers.registry import Assignment, Done, failed, succeeded

KEPT = 64 * 1024  # bytes of the answer
CONNECT_WITHIN = 10.0  # seconds; the run's own deadline bounds the whole
WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


class HttpHandler:
    description: ClassVar = "Send one HTTP request; an answer with a code of success is success."
    config_shape: ClassVar = HttpConfig

    def __init__(self) -> None:
        self._tls = ssl.create_default_context()  # slow to make, so once; the client is new for each request

    async def run(self, assignment: Assignment) -> Done:
        done = await self._exchange(assignment)
        if isinstance(
            done.outcome, Failed
        ):  # what went well is in the output; a line for each would only cost
            assignment.ctx.write("system", f"{_target(assignment.config)}: {done.outcome.error.message}")
        return done

    async def _exchange(self, assignment: Assignment) -> Done:
        config = assignment.config
        url = str(config.get("url", ""))
        if not url.lower().startswith(("http://", "https://")):
            return failed("url_invalid", "config.url must start with http:// or https://.", permanent=True)
        # A client of its own for each run: no cookie and no connection is shared between workspaces. No proxy from the
        # environment either.
        timeout = httpx2.Timeout(None, connect=CONNECT_WITHIN)
        async with httpx2.AsyncClient(verify=self._tls, timeout=timeout, trust_env=False) as client:
            try:
                method, content = _method(config), _content(assignment)
                async with client.stream(
                    method, url, content=content, headers=_headers(assignment, content)
                ) as answer:
                    output = await _kept(answer)
            except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
                return failed("url_invalid", f"config.url cannot be used: {error}.", permanent=True)
            except httpx2.HTTPError as error:
                return failed("http_failed", f"No answer from the target: {_why(error)}.")
        code = output["status"]
        if code in config["success"] if config.get("success") else 200 <= code < 300:
            return succeeded(output)
        return failed("http_status", f"The target answered {code}.", output)

    async def close(self) -> None:
        pass


def _method(config: Mapping[str, Any]) -> str:
    return str(config.get("method", "POST")).upper()


def _target(config: Mapping[str, Any]) -> str:
    """Without what may be secret in an address."""
    try:
        url = httpx2.URL(str(config.get("url", "")))
    except (httpx2.InvalidURL, UnicodeError):
        return _method(config)
    return f"{_method(config)} {url.copy_with(query=None, fragment=None, username=None, password=None)}"


def _content(assignment: Assignment) -> bytes | None:
    config = assignment.config
    if "body" in config:
        body = config["body"]
        return body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return None if _method(config) in WITHOUT_BODY else json.dumps(dict(assignment.input)).encode()


def _headers(assignment: Assignment, content: bytes | None) -> dict[str, str]:
    """The run's id is the same for all its attempts, so a target that knows Idempotency-Key does the work once."""
    ctx = assignment.ctx
    headers = {
        "user-agent": f"foliot/{__version__}",
        "accept-encoding": "identity",  # what is packed could unfold to any size
        "idempotency-key": ctx.run_id,
        "foliot-run-id": ctx.run_id,
        "foliot-attempt": str(ctx.attempt),
        "foliot-fence": str(ctx.fence),
        "foliot-planned-for": ctx.planned_for.isoformat(),
    }
    if content is not None and not isinstance(assignment.config.get("body"), str):
        headers["content-type"] = "application/json"
    given = assignment.config.get("headers") or {}
    return headers | {str(name).lower(): str(value) for name, value in given.items()}


async def _kept(answer: httpx2.Response) -> dict[str, Any]:
    kept = b""
    async for piece in answer.aiter_raw():
        kept += piece
        if len(kept) > KEPT:
            break
    text = kept[:KEPT].decode("utf-8", "replace").replace("\0", "\ufffd")
    return {
        "status": answer.status_code,
        "content_type": answer.headers.get("content-type", ""),
        "body": text,
        "truncated": len(kept) > KEPT,
    }


def _why(error: httpx2.HTTPError) -> str:
    return str(error).strip(". ") or type(error).__name__
