"""The access log, metrics and traces."""
