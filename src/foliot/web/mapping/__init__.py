"""Translate between JSON shapes and domain values, in both directions."""
