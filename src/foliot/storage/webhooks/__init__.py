"""Incoming webhooks and the messages that they have accepted."""
