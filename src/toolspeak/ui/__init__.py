"""The page on which people see what a model gets and writes: its files, and what it asks its server for."""
