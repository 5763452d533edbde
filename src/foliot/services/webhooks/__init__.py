"""Incoming webhooks: the verbs on them, signed triggers, and check-ins of work that is done elsewhere."""
