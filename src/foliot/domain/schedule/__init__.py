"""When: one time engine. Preview, next-run, explain, agenda and firing all ask `timetable.py`."""
