"""When it happens: loops that call services and nap. They decide nothing; a test calls their steps without any loop."""
