"""Alembic's entry: always online, always on a connection handed in by `stores.schema`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
