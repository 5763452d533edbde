"""The command line: a file per noun. Commands import what they need when they run, so that help stays instant."""
