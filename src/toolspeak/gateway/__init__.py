"""The gateway: serves any model, with tools, through the APIs that programs already use."""
