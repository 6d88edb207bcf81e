"""Crawling a website: from a list of addresses to their PDFs, named, stored and told of."""
