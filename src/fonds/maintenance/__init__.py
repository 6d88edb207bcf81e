"""Keeping a library well: what is wrong with it, and what may go."""
