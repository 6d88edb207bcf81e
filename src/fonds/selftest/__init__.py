"""Proof on the user's own machine: killed or failing anywhere, a library loses nothing."""
