"""Pages for people: search and reading for everybody, operations for those who run the library."""
