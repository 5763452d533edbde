"""Store secrets encrypted and resolve references to them."""
