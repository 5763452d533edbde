"""Start, cancel, find and explain runs; their logs, artifacts and statistics."""
