"""`foliot apply` and `foliot export`: jobs as a file.

yaml_text.py  YAML without its surprises
sheet.py      a file of jobs, read and written
plan.py       a file against what is there: what to create, change, leave and archive. Pure
commands.py   the commands
"""
