"""Helpers for tests of Foliot and of products built on it: a manual clock and throw-away databases."""
