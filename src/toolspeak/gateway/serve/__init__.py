"""The gateway as processes: sockets, HTTP, supervision."""
