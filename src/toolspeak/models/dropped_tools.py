"""Tells by a server's own count of tokens that its model did not read the offered tools.

A server whose chat template has no place for tools may take them and drop them, and one with a small context may cut them
off. The model then answers in words, and nothing else shows why. The count shows it, if the whole prompt has fewer than half
of the tokens that the tools alone need by the estimate: every template writes them out, and most add an explanation. With
longer messages the count says nothing.

A count is no proof: some servers count only what they had not cached. So `fallback` compares counts with and without tools
before it moves the tools into the prompt.
"""

from __future__ import annotations

from ..plan.token_estimate import about_tool
from ..types import Note, Request, Usage

ADVICE = (
    "Put the tools into the prompt with dialect=… (--dialect, or `dialect` of the model in the gateway's configuration), or "
    "run `toolspeak doctor` with the server's address: it checks this, and what it finds is used for a day"
)


DROPPED = "tools-dropped"
"""The rule of the note."""


def dropped_tools(request: Request, usage: Usage) -> Note | None:
    """A note if the server counted too few tokens for the tools of the request; None if it may have read them."""
    if usage.estimated or not usage.prompt_tokens or request.choice == "none":
        return None
    needed = sum(map(about_tool, request.tools or ()))
    if 2 * usage.prompt_tokens >= needed:
        return None
    counted = (
        f"The server counted {usage.prompt_tokens:,} tokens in the whole prompt; the tools alone are about {needed:,}"
    )
    return Note(DROPPED, f"{counted}. It dropped the tools, or cut the prompt. {ADVICE}")
