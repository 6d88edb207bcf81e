"""Crawling websites: from their addresses to their PDFs, which are named, stored and recorded.

`session.py` opens a crawl and runs it, `crawler.py` visits pages, and `downloads.py` fetches what
they list. Below them: `pages/` parses a page, `strategy.py` and the advisors find out how it lists
its PDFs, and `crawl_state.py` records what happens.
"""
