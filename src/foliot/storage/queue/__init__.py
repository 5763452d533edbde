"""Runs that are not finished: ready, waiting, leased, and the limits on them."""
