"""What is true: frozen values and pure decisions. No IO, clock, chance or logging in this room."""
