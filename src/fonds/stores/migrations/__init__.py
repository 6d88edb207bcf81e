"""The schema's history; each revision runs on SQLite and PostgreSQL."""
