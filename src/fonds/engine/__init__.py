"""Where batches run: on this machine, or on a cluster."""
