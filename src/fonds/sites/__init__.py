"""Crawling a website: from a list of addresses to their PDFs, named, stored and told of.

`expedition.py` opens a crawl, `crawl.py` is one, `exploring.py` visits pages and `collection.py`
fetches what they list. Below them: `pages/` reads a page, `advice/` finds out how it lists its
PDFs, `records/` keeps what a crawl leaves behind.
"""
