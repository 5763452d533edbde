"""The private PostgreSQL that `foliot serve` runs when no database is configured.

It starts and stops a server; what is inside the database is the storage room's business. No SQL driver here, and
nothing is read from the environment: everything comes in as an `EmbeddedConfig`. Linux only (`/proc`, parent-death
signals); elsewhere a database is configured by address.
"""
