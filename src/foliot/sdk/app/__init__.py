"""Jobs as decorated functions. Importing a module that has some does nothing but remember them.

application.py  Foliot: the app, its decorator, and its way to a server
job.py          a function that is a job
options.py      what the decorator takes, and the JSON of the API made from it
inputs.py       which input fits a function's parameters
errors.py   the one error that all this raises
"""
