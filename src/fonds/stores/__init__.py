"""The database and the blob store of a library."""
