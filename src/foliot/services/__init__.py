"""What can be done: one verb, one transaction. Console, API, CLI and agents all come through here."""
