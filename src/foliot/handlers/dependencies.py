"""Dependencies of handlers: the parts of its process that a handler may use, and the policies of the operator."""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.domain.bridge_policy import BridgePolicy
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.handlers.sandbox import Sandbox
from foliot.handlers.supervised_process import ProcessLimits
from foliot.services import Database
from foliot.services.hints import Announce


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """Networks, queues and tasks that jobs may reach: checked when a job is written, and again when it runs."""

    egress_allow: tuple[str, ...] = ()  # networks besides the public internet
    bridge_policy: BridgePolicy = BridgePolicy()


DEFAULT_EGRESS_POLICY = EgressPolicy()


@dataclass(frozen=True, slots=True)
class QueueEngineUrls:
    """Addresses of the queue engines that runs may be handed over to; None where there is none."""

    redis_url: str | None = field(default=None, repr=False)  # of RQ and BullMQ
    celery_broker_url: str | None = field(default=None, repr=False)
    celery_result_url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HandlerDeps:
    """A handler's class takes what it needs in `from_deps`; a class without that is called without arguments."""

    database: Database | None = None  # None on a remote host, which has no database
    egress_policy: EgressPolicy = DEFAULT_EGRESS_POLICY
    allow_commands: bool = False
    command_env: tuple[str, ...] = ()  # variables of this process that commands may see
    python_packages: tuple[str, ...] = ()  # installed packages whose plain functions jobs may name
    process_limits: ProcessLimits = ProcessLimits()  # of each process started for a run
    sandbox: Sandbox = Sandbox()  # of commands
    queue_engines: QueueEngineUrls = QueueEngineUrls()
    event_url: str | None = None  # takes the events of jobs that name no endpoint
    quotas: Quotas = UNLIMITED  # of workspaces without quotas of their own
    announce: Announce = lambda hint: None
