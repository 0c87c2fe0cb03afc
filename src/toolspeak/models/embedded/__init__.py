"""Models in this process: GGUF files, run by llama.cpp."""
