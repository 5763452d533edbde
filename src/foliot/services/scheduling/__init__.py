"""Fire due timers, freeze and repair them."""
