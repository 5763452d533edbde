"""Workspaces, members, keys, audit and idempotency keys."""
