"""Decides which calls may run: rules, the origin of what a conversation holds, the digests of approvals. Pure."""
