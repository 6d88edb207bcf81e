"""Asking upstreams politely, and keeping what they served."""
