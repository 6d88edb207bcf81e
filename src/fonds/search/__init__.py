"""Finding passages."""
