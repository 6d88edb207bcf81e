"""Markdown to passages, each with its place."""
