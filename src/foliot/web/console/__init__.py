"""The web console: server-rendered pages over the REST API of the same process.

Each page reads and writes through `/api/v1` inside the process (`api.py`), with the key of the signed-in person. Permissions,
validation, rate limits, audit and error sentences are therefore the API's own, and a page can show the exact request of each action.
"""
