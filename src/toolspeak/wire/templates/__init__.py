"""A model's own chat template: rendering it within bounds, what it can tell, and the conversation made to fit it."""
