"""What a crawl leaves behind: files, metadata and the journal."""
