"""Job definitions and what belongs to them: revisions, dependencies, calendars, freezes, job types."""
