"""Finding the dialect of a model: by name, by template, by what its tokenizer declares; drafted where nobody wrote one."""
