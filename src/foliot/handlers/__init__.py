"""What a job does, one file each. A handler is given an assignment and answers what came of it; it knows no database."""
