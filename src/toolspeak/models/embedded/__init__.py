"""Models in this very process: GGUF files, run by llama.cpp."""
