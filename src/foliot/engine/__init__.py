"""Loops that call services and sleep. They decide nothing; a test calls their steps without any loop."""
