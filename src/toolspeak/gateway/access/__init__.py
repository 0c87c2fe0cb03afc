"""Access control: API keys, and web pages of other origins."""
