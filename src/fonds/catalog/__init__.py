"""What readers look up besides ranking: facets, links between documents, trees, what changed."""
