"""What tests of Foliot, and of products built on it, stand on: a clock to set by hand and databases to throw away."""
