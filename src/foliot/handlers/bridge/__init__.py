"""Bridges: hand runs over to Celery, RQ or BullMQ, where a team already runs one, and wait until they have really ended.

`bridge.py` holds the shared part; each engine has a file. Nothing here is loaded before a broker is configured: the libraries come
with the extras `foliot[celery]`, `foliot[rq]` and `foliot[bullmq]`.
"""
