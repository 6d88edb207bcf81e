"""Fetches files from upstreams politely, archives, records and replays them."""
