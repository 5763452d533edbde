"""What the reference of the API sends, by operation: a query, a body. tests/docs sends each of them to a real app.

`$job_id` and its like stand for objects that must be there; the page shows them as variables of the shell.
"""

from __future__ import annotations

from typing import Any

CALENDAR = {
    "name": "holidays",
    "kind": "blackout",
    "timezone": "Europe/Paris",
    "rules": [{"kind": "absolute", "start": "2027-12-24T23:00:00Z", "end": "2027-12-26T23:00:00Z"}],
}
JOB = {
    "name": "daily sync",
    "type": "http",
    "config": {"url": "https://example.test/hook"},
    "payload": {"full": True},
    "schedule": {"kind": "cron", "expr": "0 6 * * *", "timezone": "Europe/Paris"},
    "retry": {"max": 3, "strategy": "list", "delays": ["5m", "15m", "30m"]},
    "tags": ["billing"],
}
QUERIES: dict[str, str] = {
    "list_holidays": "country=ES&subdivision=MD&first_year=2027&years=1",
    "get_calendar_year": "year=2027",
    "list_jobs": "q=status:active%20tag:billing&sort=next_run_at",
    "next_times": "n=3",
    "list_runs": "q=status:failed%20since:24h",
    "list_job_runs": "status=skipped",
    "list_recent_runs": "job=$job_id&limit=30",
    "explain_job": "at=2035-01-02T18:00:00Z",
    "job_stats": "days=7",
    "workspace_stats": "days=7",
    "workspace_now": "jobs=true",
    "list_agenda": "tag=billing",
    "agenda_density": "buckets=24",
    "preview_schedule": "n=3",
    "stream_events": "types=run.failed,freeze",
    "read_logs": "limit=200",
    "list_freezes": "ended=true",
    "list_audit": "action=job.paused&limit=20",
    "list_members": "kind=agent",
    "list_rooms": "key=support",
    "read_messages": "cursor=0&wait=1",
    "list_deliveries": "state=dead",
    "list_secrets": "name=crm-token",
    "list_incidents": "state=open",
    "list_notice_deliveries": "state=dead",
    "patch_job": "revision_note=slower",
    "remove_limit": "key=warehouse",
}
HELD = {"run_id": "$run_id", "fence": 1}
CHANNEL = {"name": "ops", "config": {"kind": "email", "to": ["ops@example.com"]}}
RULE = {
    "name": "billing",
    "events": ["run_failed", "recovered"],
    "channels": ["$channel_id"],
    "scope": {"tags": ["billing"]},
    "after_n": 2,
    "quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "Europe/Madrid"},
}
WEBHOOK = {"name": "deployments", "kind": "trigger", "job_id": "$job_id", "secret": {"secret": "deploy-hook"}}
BODIES: dict[str, dict[str, Any]] = {
    "create_webhook": WEBHOOK,
    "replace_webhook": {**WEBHOOK, "name": "releases", "old_secret": {"secret": "deploy-hook-2"}},
    "create_channel": CHANNEL,
    "replace_channel": {**CHANNEL, "name": "on call"},
    "create_notification_rule": RULE,
    "replace_notification_rule": {**RULE, "name": "invoices"},
    "snooze_incident": {"until": "2035-01-02T18:00:00Z"},
    "set_incident_note": {"note": "The vendor is informed."},
    "change_host": {"max_reads": 20, "labels": {"region": "eu"}},
    "add_instance": {"name": "pve", "labels": {"game": "chess"}},
    "change_instance": {"host_id": "$host_id"},
    "register_worker": {
        "name": "h1/4711",
        "types": ["http"],
        "capacity": 8,
        "host": {"name": "h1", "labels": {"region": "eu"}, "instances": ["pvp"]},
    },
    "claim_work": {"worker_id": "$worker_id", "types": ["http"], "permits": 4, "wait": "0s"},
    "send_heartbeat": {"worker_id": "$worker_id", "working_on": [HELD]},
    "wait_for_stops": {"worker_id": "$worker_id", "working_on": [HELD], "wait": "0s"},
    "write_log": {
        "worker_id": "$worker_id",
        "chunks": [
            {
                **HELD,
                "attempt": 1,
                "first": 1,
                "lines": [{"at": "2035-01-02T18:00:00Z", "text": "restarting"}],
            }
        ],
    },
    "report_work": {
        "worker_id": "$worker_id",
        "reports": [{**HELD, "outcome": "succeeded", "output": {"players": 12}}],
    },
    "keep_artifact": {
        "worker_id": "$worker_id",
        **HELD,
        "attempt": 1,
        "name": "players.csv",
        "media_type": "text/csv",
        "content": "bmFtZQphZGEK",
    },
    "leave_work": {"worker_id": "$worker_id"},
    "create_job": JOB,
    "replace_job": {**JOB, "overlap": "queue_one"},
    "patch_job": {"schedule": {"kind": "interval", "every": "30m"}, "timeout": None},
    "revert_job": {"revision": 1, "note": "the new time was wrong"},
    "run_job": {"input": {"full": False}},
    "pause_job": {"reason": "database upgrade", "until": "2035-01-02T18:00:00Z"},
    "disable_job": {"reason": "no longer needed"},
    "resume_job": {"catch_up": False},
    "skip_next_times": {"n": 2, "reason": "the office is closed"},
    "backfill_job": {"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z", "dry_run": True},
    "act_on_many": {
        "action": "pause",
        "q": "tag:billing status:active",
        "expected_count": 1,
        "args": {"reason": "database upgrade"},
    },
    "act_on_many_runs": {"action": "cancel", "ids": ["$run_id"], "reason": "started by mistake"},
    "delete_many": {"ids": ["$job_id"]},
    "apply_batch": {
        "writes": [
            {"method": "POST", "path": "/rooms", "body": {"name": "Operations", "key": "operations"}},
            {"method": "PUT", "path": "/limits", "body": {"key": "reports", "cap": 2}},
        ]
    },
    "import_jobs": {
        "source": "crontab",
        "text": "0 9 * * 1-5 /usr/bin/report",
        "time_zone": "Europe/Madrid",
        "shadow": True,
    },
    "cancel_run": {"reason": "wrong month"},
    "retry_run": {"input": {"full": True}},
    "preview_schedule": {"words": "every other tuesday at 14:30", "timezone": "Europe/Paris"},
    "create_calendar": CALENDAR,
    "replace_calendar": {**CALENDAR, "name": "closing days", "otherwise": "defer"},
    "change_calendar": {"timezone": "America/Argentina/Buenos_Aires"},
    "turn_freeze_on": {"scope": {"tags": ["billing"]}, "reason": "database upgrade", "after": "latest"},
    "read_ics_file": {
        "text": "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20270704\nSUMMARY:Our day\nEND:VEVENT\nEND:VCALENDAR\n",
        "first_year": 2027,
    },
    "preview_freeze": {"scope": {"everything": True}, "reason": "database upgrade"},
    "set_limit": {"key": "warehouse", "cap": 2},
    "set_budgets": {"items": [{"unit": "usd", "amount": "25", "period": "month", "warn_at": 0.8}]},
    "report_run_usage": {"usage": {"tokens": 1200, "usd": "0.0123"}},
    "create_key": {"name": "deploys", "scopes": ["operator"], "expires_at": "2035-12-31T00:00:00Z"},
    "change_key": {"name": "deploys of 2027"},
    "create_member": {"kind": "agent", "name": "assistant", "role": "editor"},
    "change_member": {"role": "viewer"},
    "invite_member": {"expires_at": "2035-01-02T18:00:00Z"},
    "change_defaults": {"timeout": "20m", "retry": {"max": 5, "strategy": "exponential", "base": "10s"}},
    "switch_job_type": {"enabled": False, "reason": "the CRM moves on Sunday"},
    "create_room": {"name": "Support", "key": "support"},
    "change_room": {"name": "Support, evenings", "webhook": {"url": "https://example.test/support"}},
    "redeliver": {},
    "post_message": {"text": "The backup is done."},
    "create_secret": {"name": "crm-token", "value": "Bearer 3q2-7wEAAAA"},
    "replace_secret": {"value": "Bearer 9f86d081884c"},
    "give_secret": {"agents": ["$agent_id"]},
    "rotate_master_key": {"new_key": False},
    "create_workspace": {
        "slug": "initech",
        "name": "Initech",
        "default_timezone": "America/Chicago",
        "quotas": {"jobs": 100, "min_interval": 60},
    },
    "change_workspace": {"quotas": {"jobs": 500}},
}
