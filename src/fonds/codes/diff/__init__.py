"""Comparison of two editions of a code: sections added, removed, renumbered and changed."""
