"""Formats and lists that several sources share."""
