"""The private PostgreSQL that `foliot serve` runs when no database is configured.

This package starts and stops a server; `storage` works inside the database. It has no SQL driver and reads no environment: everything
comes as an `EmbeddedConfig`. Linux only (`/proc`, parent-death signals); elsewhere a database is configured by address.
"""
