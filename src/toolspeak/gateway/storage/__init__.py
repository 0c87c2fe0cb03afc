"""Data that the gateway stores on disk, in SQLite."""
