"""The pages of those who run the library."""
