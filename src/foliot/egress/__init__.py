"""How requests leave: to an address that was resolved once, approved, and is then the one connected to."""
