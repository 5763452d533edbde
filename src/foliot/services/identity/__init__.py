"""Workspaces, members, keys, quotas, audit, idempotency."""
