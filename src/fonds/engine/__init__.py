"""Engines that run batches of work, on this machine or on a cluster."""
