"""The types of jobs, one file each. A handler takes an assignment and returns its result; it knows no database."""
