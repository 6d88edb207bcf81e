"""Public documents in, cited answers out."""
