"""`foliot jobs`: looking.py, operating.py, creating.py, editing.py; what is drawn stands in rendering.py."""
