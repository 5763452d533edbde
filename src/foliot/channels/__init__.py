"""How word leaves the house, one file each. A channel sends once and says what came of it; when, how often and until when is decided elsewhere."""
