"""A small bundled upstream, served on loopback."""
