"""What the engine costs, measured through the real services on a real PostgreSQL: `./dev bench engine`."""
