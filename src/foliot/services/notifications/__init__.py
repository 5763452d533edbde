"""Notifications: from facts that transactions write to deliveries in the outbox, and the verbs of rules, channels and incidents."""
