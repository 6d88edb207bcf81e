"""Markdown cut into passages, each with its locator."""
