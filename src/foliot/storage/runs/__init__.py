"""The run history: records, search, statistics, pruning."""
