"""Guarded outgoing requests: resolve a name once, approve its addresses, and connect to one of those."""
