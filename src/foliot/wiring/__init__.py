"""Where the parts are put together: settings in, a running node (`node.py`) or one finished errand out.

Everything below is handed what it needs. Only this room knows which database the settings mean and in which order
things start and stop.
"""
