"""Chat rooms, their messages and webhooks, and the outbox courier."""
