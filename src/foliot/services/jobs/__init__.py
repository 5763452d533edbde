"""Define, edit, find, pause and resume jobs."""
