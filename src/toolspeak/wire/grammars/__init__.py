"""A dialect and its tools as one grammar, and the forms in which engines take it."""
