"""Providers' wire formats, each described once: pure codecs between our values and their JSON.

No I/O, no clock, no randomness, no async: bytes in, events out, and requests into JSON.
"""
