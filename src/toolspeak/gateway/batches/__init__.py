"""Batches behind the gateway: files that clients upload, lines that are answered as requests are, and what comes of them."""
