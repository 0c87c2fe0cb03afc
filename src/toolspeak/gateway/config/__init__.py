"""The configuration: its settings, and the file that they are read from."""
