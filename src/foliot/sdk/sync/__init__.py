"""Jobs as code: compare the jobs of a file or an app with those of a server. `foliot apply` and app sync share it.

entries.py  one wanted job, complete, with names in place of ids
plan.py     what to create, change, leave and archive; the request bodies; the result
"""
