"""One file for each way of writing calls or arguments: text to JSON as it arrives, and back."""
