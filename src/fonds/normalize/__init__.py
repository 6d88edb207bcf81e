"""Bytes to Markdown: pure, one file per format."""
