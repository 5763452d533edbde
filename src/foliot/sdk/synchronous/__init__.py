# Made from sdk/asynchronous by ./dev format; edit it there.
"""The part of the client that does I/O. `synchronous` is generated from it."""
