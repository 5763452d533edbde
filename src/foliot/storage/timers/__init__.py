"""One timer row per job: when it is due, what is live, and the statement that fires it."""
