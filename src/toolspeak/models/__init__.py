"""Models: whatever can be asked, local or remote. Each file here talks to one kind of them."""
