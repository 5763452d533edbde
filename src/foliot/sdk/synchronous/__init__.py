# Made from sdk/asynchronous by ./dev format; edit it there.
"""The parts of the client that wait. Written once, in `asynchronous`; its twin is `synchronous`."""
