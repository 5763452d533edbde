"""What jobs may reach from this installation, by its operator's choice: asked when a job is written, and again when it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from foliot.domain.bridge_policy import Handing
from foliot.domain.quotas import UNLIMITED, Quotas
from foliot.handlers.sandbox import Sandbox
from foliot.handlers.supervised_process import ProcessLimits
from foliot.services import Database
from foliot.services.hints import Announce


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    egress_allow: tuple[str, ...] = ()  # networks that requests may go to beside the public internet
    handing: Handing = Handing()


DEFAULT_EGRESS_POLICY = EgressPolicy()


@dataclass(frozen=True, slots=True)
class QueueEngineUrls:
    """Where the queue engines are that runs may be handed over to. What is None is not there."""

    redis_url: str | None = field(default=None, repr=False)  # of RQ and BullMQ
    celery_broker_url: str | None = field(default=None, repr=False)
    celery_result_url: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HandlerDeps:
    """A handler's class takes what it needs in `from_deps`; one that needs nothing is made without."""

    database: Database | None = None  # None on a host, which speaks HTTP alone
    egress_policy: EgressPolicy = DEFAULT_EGRESS_POLICY  # of jobs, beside the public internet
    allow_commands: bool = False
    command_env: tuple[str, ...] = ()  # names of our variables that commands may see
    python_packages: tuple[str, ...] = ()  # installed ones whose plain functions jobs may name
    process_limits: ProcessLimits = ProcessLimits()  # of each process that is started for a run
    sandbox: Sandbox = Sandbox()  # of commands besides
    queue_engines: QueueEngineUrls = QueueEngineUrls()
    quotas: Quotas = UNLIMITED  # of a workspace that has none of its own
    announce: Announce = lambda hint: None
