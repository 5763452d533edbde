"""Notifications: facts about jobs, incidents made of them, rules that say who hears of what, and the text of messages. Pure."""
