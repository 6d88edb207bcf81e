"""How each source is cited."""
