"""Frozen values and pure decisions. This package does no IO and no logging, and reads no clock and no random numbers."""
