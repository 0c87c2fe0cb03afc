"""Decides which calls may run: rules, the origin of the conversation's content, and digests for approvals. Pure.

How a person is asked, and how long a pending call can be approved, is in `toolspeak.approvals`.
"""
