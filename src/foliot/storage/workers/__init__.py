"""Workers, hosts and their server instances."""
