"""Jobs as decorated functions. Importing a module that has some only registers them.

application.py  Foliot: the app, its decorators, and its client
job.py          functions that are jobs, and functions that handle a job type
options.py      the keywords of the decorator, and the JSON of the API made from them
inputs.py       checks an input against a function's parameters
"""
