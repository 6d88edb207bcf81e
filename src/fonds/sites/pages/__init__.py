"""Reading a page: its links, its lists, and what stands beside them."""
