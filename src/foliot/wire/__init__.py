"""JSON shapes and problem codes, shared by the HTTP edge and its clients. Knows nothing of the domain: only what goes over the wire.

shape.py      what every shape is: strict, closed, and helpful about a field it does not know
durations.py  10m, 1h30m, PT10M
instants.py   RFC 3339
schedules.py  jobs.py  runs.py  pages.py  shape.py
"""

# Set before the first shape is imported, by a process that uses a few shapes once: to build all of them takes longer than most
# commands of the command line. FastAPI needs them built.
builds_on_first_use = False
