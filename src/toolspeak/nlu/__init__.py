"""Reading a request for a model that was never taught tools: which tool it wants, with what. `scored` is its one door."""
