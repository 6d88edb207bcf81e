"""The tables people ask of a library, as files for other programs."""
