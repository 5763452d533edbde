"""Answer why a run happened, did not happen, or waits. Pure: records and definition in, a sentence out."""
