"""Authentication and permissions. A route of the API names its permission by taking its caller through a `Guard`.

Why: docs/decisions/600-access-is-checked-first.md
"""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_address
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase

from foliot.domain.access import Permission
from foliot.services.identity.authentication import Authenticator, Caller, require_permission
from foliot.web.errors import Refused
from foliot.web.rate_limits import RateLimits

HINT = "Send the header `Authorization: Bearer <key>`. The first key is in the file admin.key of the data directory."


class Guard(SecurityBase):
    """Authenticates the caller and checks the permission, before anything else of the request is read."""

    def __init__(self, permission: Permission, *, agents: bool = True) -> None:
        """`agents` is false for resources that a whole workspace shares: an agent manages only its own jobs."""
        self.permission = permission
        self.agents = agents
        self.model = HTTPBearer(description="An API key, `fol_...`.")
        self.scheme_name = "key"

    async def __call__(
        self,
        request: Request,
        foliot_workspace: Annotated[
            str | None, Header(description="System keys: the slug of the workspace to work in.")
        ] = None,
    ) -> Caller:
        admitted: Caller | None = getattr(request.state, "caller", None)
        if admitted is None:
            admitted = request.state.caller = await self._admit(request)
        elif getattr(
            request.state, "is_part", False
        ):  # a write of a batch: its caller is known, its route is another
            require_permission(admitted, self.permission, agents=self.agents)
        return admitted

    async def _admit(self, request: Request) -> Caller:
        scheme, _, presented = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not presented.strip():
            raise Refused(
                401,
                "This needs an API key.",
                hint=HINT,
                headers={"WWW-Authenticate": 'Bearer realm="foliot"'},
            )
        address = address_of(request)
        slug = request.headers.get("foliot-workspace")
        caller = await authenticate(request, presented.strip(), address, slug)
        if caller is None:
            challenge = 'Bearer realm="foliot", error="invalid_token"'
            raise Refused(
                401,
                "This API key is not valid: unknown, revoked or expired.",
                hint=HINT,
                headers={"WWW-Authenticate": challenge},
            )
        rates: RateLimits = request.app.state.rates
        request.state.rate = rates.count(caller)
        require_permission(caller, self.permission, agents=self.agents)
        return replace(caller, address=address, request_id=request.state.request_id)


async def authenticate(
    request: Request, presented: str, address: str | None, slug: str | None
) -> Caller | None:
    """Authenticate the key; one of the installation chooses its workspace by `slug`. An address that sent many wrong keys is refused without a query.

    A key that was valid before is always looked up: many callers may share one address.
    """
    authenticator: Authenticator = request.app.state.authenticator
    rates: RateLimits = request.app.state.rates
    if not authenticator.knows(presented):
        rates.check_failures(address)
    caller = await authenticator.enter(presented, slug)
    if caller is None:
        rates.count_failure(address)
    return caller


def address_of(request: Request) -> str | None:
    """Return the peer's address. Headers of proxies are not trusted."""
    try:
        return str(ip_address((request.client.host if request.client else "").partition("%")[0]))
    except ValueError:  # a UNIX socket has no address
        return None


Viewer = Annotated[Caller, Depends(Guard(Permission.VIEWER))]
Operator = Annotated[Caller, Depends(Guard(Permission.OPERATOR))]
Editor = Annotated[Caller, Depends(Guard(Permission.EDITOR))]
Admin = Annotated[Caller, Depends(Guard(Permission.ADMIN))]
System = Annotated[Caller, Depends(Guard(Permission.SYSTEM))]
Works = Annotated[Caller, Depends(Guard(Permission.WORKER, agents=False))]
Invited = Annotated[Caller, Depends(Guard(Permission.INVITE, agents=False))]
# For resources that a whole workspace shares, such as calendars and freezes.
SharedViewer = Annotated[Caller, Depends(Guard(Permission.VIEWER, agents=False))]
SharedOperator = Annotated[Caller, Depends(Guard(Permission.OPERATOR, agents=False))]
SharedEditor = Annotated[Caller, Depends(Guard(Permission.EDITOR, agents=False))]
