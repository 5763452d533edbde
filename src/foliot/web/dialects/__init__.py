"""Interfaces of the systems that Foliot replaces, each switched on by the setting `dialects`.

A dialect holds no logic of its own: each of its routes translates a request into calls of the API's routes and their answers back,
so permissions, checks and records are those of the API. Dialects are not part of /openapi.json; docs/reference/dialects.md lists
their differences.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter

from foliot.web.dialects import actions, scheduled_jobs, schedules

ROUTERS: Mapping[str, APIRouter] = {
    "scheduled-jobs": scheduled_jobs.routes,
    "actions": actions.routes,
    "schedules": schedules.routes,
}
JOB_FIELDS = "job-fields"  # names of job fields, read by `job_fields.py`
DIALECTS = (*ROUTERS, JOB_FIELDS)
