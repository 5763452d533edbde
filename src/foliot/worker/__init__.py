"""Doing the work: claim, execute, heartbeat, report, over a Link. What to do next is decided where the reports arrive."""
