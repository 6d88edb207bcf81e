"""Imports and exports: bundles, tables for other programs, whole databases, back-ups."""
