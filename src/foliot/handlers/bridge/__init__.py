"""Bridges: runs handed over to Celery, RQ or BullMQ, where a team already runs one, and waited for until they have really ended.

What all of them share is in `bridge.py`; each engine has a file. Nothing here is loaded before a broker is configured: the libraries come
with the extras `foliot[celery]`, `foliot[rq]` and `foliot[bullmq]`.
"""
