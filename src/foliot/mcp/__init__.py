"""Tools for AI agents, by the Model Context Protocol."""
