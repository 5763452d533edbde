"""The HTTP edge: shapes in and out. It calls services and knows no SQL; `errors.py` alone knows status codes."""
