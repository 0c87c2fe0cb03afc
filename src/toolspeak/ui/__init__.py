"""The page that shows the prompts and output of a model: its files, and the data that it requests."""
