"""Plans: decisions as generators. They do no I/O: they yield what they want done and are sent the outcome."""
