"""Decides which calls may run: rules, the origin of the conversation's content, and digests for approvals. Pure."""
