"""Jobs as code: what a file or an app wants, against what a server has. `foliot apply` and the sync of apps both stand on this.

entries.py  one job as it is wanted, complete, with names for ids
plan.py     what to create, what to change and how, what to leave, what is gone. Pure
writes.py  what to send for each of them
result.py   what came of a sync
"""
