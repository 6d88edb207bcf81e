"""Crawling a website: from a list of addresses to their PDFs, named, stored and told of.

`session.py` opens a crawl and runs it, `crawler.py` visits pages, and `downloads.py` fetches what
they list. Below them: `pages/` reads a page, `strategy.py` and the advisors find out how it lists
its PDFs, and `crawl_state.py` stores what a crawl leaves behind.
"""
