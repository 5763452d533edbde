"""`foliot apply` and `foliot export`: jobs as a file.

yaml_text.py  YAML without its surprises
job_file.py      a file of jobs, read and written; what is done with them stands in foliot.sdk.sync
commands.py   the commands
"""
