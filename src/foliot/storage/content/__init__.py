"""Content that runs and users store: logs, artifacts, progress, chat rooms, secrets."""
