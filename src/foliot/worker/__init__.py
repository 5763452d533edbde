"""The worker: claim runs, execute them with their handlers, send heartbeats, report results."""
