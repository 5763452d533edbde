"""Turn the outcome of an attempt into the end of the run or its next attempt, and the effects on the job."""
