"""The web pages: search and reading for all, operations for operators."""
