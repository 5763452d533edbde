"""Assemble the parts: settings in, a running node (`node.py`), worker, host or finished admin task out.

All other packages get what they need as arguments. Only this one knows which database the settings mean, and in which order things start
and stop.
"""
