"""Channels: how a notice leaves, one file each. A channel sends once and returns the outcome; the courier decides on retries."""
