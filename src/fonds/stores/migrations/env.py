"""Alembic's entry: always on a connection handed in by `fonds.schema`."""

from alembic import context

attributes = context.config.attributes
context.configure(
    connection=attributes["connection"],
    transactional_ddl=True,
    **attributes.get("autogenerate", {}),
)
with context.begin_transaction():
    context.run_migrations()
