"""A library's public content as files that are the same on every machine, under one hash."""
