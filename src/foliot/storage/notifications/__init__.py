"""Storage of notifications: notices, incidents, channels, rules and the contents of deliveries."""
