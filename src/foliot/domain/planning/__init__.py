"""Turn a due job and the current time into run records, skip records and the next timer."""
