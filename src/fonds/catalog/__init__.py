"""Lookups besides ranked search: facets, links between documents, trees, changes."""
