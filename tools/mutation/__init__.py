"""Planted bugs: `./dev mutate` applies each one to a throw-away copy and runs the tests that should notice it."""
