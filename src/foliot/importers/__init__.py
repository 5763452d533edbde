"""Definitions of other schedulers, turned into jobs. Pure text in, job bodies out; nothing is stored here."""
