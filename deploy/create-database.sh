#!/bin/bash
# Create the role and the database of fonds. The image of PostgreSQL executes this once, as its
# superuser, on an empty volume. The role owns its database and has no rights beyond it.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\getenv password FONDS_DATABASE_PASSWORD
CREATE ROLE fonds LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'password';
CREATE DATABASE fonds OWNER fonds;
\connect fonds
CREATE EXTENSION vector;
SQL
