"""The parts of the client that wait. Written once, in `asynchronous`; its twin is `synchronous`."""
