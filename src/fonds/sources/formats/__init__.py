"""What sources of one make share: ways of reading and listing, written once."""
