"""Reading what a model writes, as it arrives."""
