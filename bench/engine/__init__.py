"""`./dev bench engine`: measure the engine through the real services on a real PostgreSQL."""
