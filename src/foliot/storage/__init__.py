"""The only room that speaks SQL: connections, migrations, roles, named queries, and rows turned into values.

No decisions here. Time and workspace come from the transaction (`tx.py`); statements live in `sql/`.
"""
