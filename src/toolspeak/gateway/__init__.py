"""The gateway: tools for any model, through the APIs that programs already speak."""
