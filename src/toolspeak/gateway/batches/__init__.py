"""Batches: files that clients upload, lines that are answered like requests, and the files with the results."""
