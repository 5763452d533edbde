"""Register workers and hosts, and lease runs to them."""
