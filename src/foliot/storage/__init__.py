"""All SQL: connections, migrations, roles, named queries, and rows turned into values. A package per table family.

No decisions here. Time and workspace come from the transaction (`tx.py`); each module's statements are in the .sql file beside it.
"""
