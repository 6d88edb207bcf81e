"""The revisions of the schema; each runs on SQLite and PostgreSQL."""
