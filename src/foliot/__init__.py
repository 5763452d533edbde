"""Foliot: durable, multi-tenant job scheduling on PostgreSQL."""

__version__ = "0.1.0"
