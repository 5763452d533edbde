"""The part of the client that does I/O. `synchronous` is generated from it."""
