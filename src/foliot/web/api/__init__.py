"""The REST API, a router per noun. Each route: parse a shape, call one service, answer with a shape."""
