"""A person's file: taken in, parsed, cut, embedded and made searchable, by a job that ends."""
