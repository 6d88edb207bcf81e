"""Reading a page: its links, its lists, and the texts around them."""
