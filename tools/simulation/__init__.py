"""Simulation in virtual time: real services on real PostgreSQL, a clock that jumps, faults from a seed, and a judge of the history.

Why: docs/decisions/421-simulation.md
"""
