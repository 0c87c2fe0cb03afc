"""Plans: the decisions of toolspeak as generators without I/O. They yield the effects that they need and receive the
outcomes."""
