"""A hash-sharded index on object storage: nothing shared but a bucket."""
