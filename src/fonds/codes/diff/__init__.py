"""Two editions of a code compared: what was added, removed, renumbered, changed."""
