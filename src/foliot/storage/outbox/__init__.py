"""Everything that leaves the service: deliveries, webhooks, events."""
