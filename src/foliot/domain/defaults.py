"""Fields of a job that it may leave to its workspace or to the installation, and where each value comes from.

Why: docs/decisions/609-defaults-are-resolved-when-they-change.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from foliot.domain.definition import Definition
from foliot.domain.policy import Limits, Retention, Retry

INHERITABLE = ("retry", "timeout", "retention")  # fields of a job


class Origin(StrEnum):
    """The level that a value comes from, if the job does not set it."""

    WORKSPACE = "workspace"
    INSTALLATION = "installation"


@dataclass(frozen=True, slots=True)
class DefaultValues:
    """The values that one level sets; None leaves a field to the level below."""

    retry: Retry | None = None
    timeout: timedelta | None = None
    retention: Retention | None = None
    timezone: str | None = None  # of new workspaces; a workspace has its own


PRODUCT = DefaultValues(Retry(), Limits().timeout, Retention(), "UTC")


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """The defaults of a workspace over those of the installation."""

    workspace: DefaultValues = DefaultValues()
    installation: DefaultValues = PRODUCT

    def origin(self, name: str) -> Origin:
        return Origin.INSTALLATION if getattr(self.workspace, name) is None else Origin.WORKSPACE

    def _value(self, name: str) -> Any:
        levels = (self.workspace, self.installation, PRODUCT)
        return next(found for level in levels if (found := getattr(level, name)) is not None)

    @property
    def retry(self) -> Retry:
        retry: Retry = self._value("retry")
        return retry

    @property
    def timeout(self) -> timedelta:
        timeout: timedelta = self._value("timeout")
        return timeout

    @property
    def retention(self) -> Retention:
        retention: Retention = self._value("retention")
        return retention

    def origins(self) -> dict[str, str]:
        return {name: self.origin(name).value for name in INHERITABLE}

    def applied_to(self, definition: Definition) -> Definition:
        """Return the definition with the current values of the fields that it inherits."""
        names = [name for name in INHERITABLE if name in definition.inherited]
        if not names:
            return definition
        spec = definition.spec
        if "retry" in names:
            spec = replace(spec, retry=self.retry)
        if "timeout" in names:
            spec = replace(spec, limits=replace(spec.limits, timeout=self.timeout))
        return replace(
            definition,
            spec=spec,
            retention=self.retention if "retention" in names else definition.retention,
            inherited={name: self.origin(name).value for name in names},
        )
