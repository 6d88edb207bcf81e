"""A whole database copied to another one, of the same kind or not."""
