"""The wire formats of providers' APIs: pure codecs between our values and their JSON.

Each API is a package with the same modules: `request` (both directions), `reader` (a server's bytes into events) and
`writer` (events into a client's bytes). No I/O, no clock, no randomness, no async.
"""
