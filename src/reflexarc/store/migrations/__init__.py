"""The schema's history, for alembic. Run by `Store.open`, never by hand."""
