"""What a request only wishes for: how much to reason, how much to say. A server without a word for it is not asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..types import Note, Request

WISHES = ("reasoning_effort", "verbosity")
"""Settings of `Request.sampling` that change how an answer is come by, and nothing that it must be."""


def granted(request: Request, known: Collection[str] | None, *, thinks: bool) -> tuple[Request, list[Note]]:
    """The request without the wishes that cannot be passed on, and a note of each.

    `known` are the names of settings that there is a place for, None for all of them; `thinks`: reasoning can be asked
    for, or not. Clients send such wishes unasked, whatever the model, and a refusal would end every turn of theirs.
    """
    left_out = [name for name in WISHES if name in request.sampling and known is not None and name not in known]
    if left_out:
        rest = {name: value for name, value in request.sampling.items() if name not in left_out}
        request = replace(request, sampling=rest)
    if request.thinking is not None and not thinks:
        request = replace(request, thinking=None)
        left_out.append("thinking")
    return request, [Note("ignored", f"{name}: this model's server has no word for it") for name in left_out]
