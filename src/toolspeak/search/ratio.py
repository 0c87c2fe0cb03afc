"""How many tokens of a model's an estimated one is: asked of its tokenizer once, where definitions come near their bound."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from ..errors import ToolspeakError
from ..models.base import Counter, Model
from ..types import Message, Request
from .kept import Toolset, size

log = logging.getLogger(__name__)

NEAR = 0.5
"""From which share of their bound definitions are counted: an estimate is hardly ever wrong by more than half."""
MOST = 256
"""Models whose ratio is remembered."""
PLAIN: Message = {"role": "user", "content": "Hi"}

_ratios: OrderedDict[str, float] = OrderedDict()
"""By the names of models."""


def ratio(model: Model) -> float:
    """Tokens of the model's for an estimated one, 1 where it was not asked."""
    return _ratios.get(model.name, 1.0)


def known(model: Model, told: float, bound: float) -> bool:
    """Whether it is known well enough that definitions of `told` estimated tokens stay within a bound."""
    return model.name in _ratios or not isinstance(model, Counter) or told < NEAR * bound


def context_of(model: Any) -> int | None:
    """How many tokens a model can read and write at once, as far as it or what it is put around tells; of several
    upstreams the least."""
    while model is not None:
        if isinstance(tokens := getattr(model, "context", None), int) and tokens > 0:
            return tokens
        if upstreams := getattr(model, "upstreams", None):
            each = [context_of(getattr(one, "model", one)) for one in upstreams]
            return None if None in each else min(tokens for tokens in each if tokens)
        inner = getattr(model, "model", None)
        model = None if inner is model or isinstance(inner, str) else inner
    return None


async def learn(model: Model, tools: Toolset, bound: int) -> bool:
    """Asks the model's tokenizer, where that can tell and the `tools` come near the `bound`; whether anything was learnt."""
    told = sum(map(size, tools))
    if model.name in _ratios or not isinstance(model, Counter) or told < NEAR * bound:
        return False
    if "scored" in model.capabilities:  # it is shown one tool at a time
        return False
    _ratios[model.name] = found = await _asked(model, tools, told)
    while len(_ratios) > MOST:
        _ratios.popitem(last=False)
    log.debug("%s has %.2f tokens for one that is estimated", model.name, found)
    return found != 1.0


async def _asked(model: Counter, tools: Toolset, told: int) -> float:
    try:
        bare = await model.count(Request([PLAIN]))
        whole = await model.count(Request([PLAIN], tools))
    except ToolspeakError as error:
        log.debug("the tokens of tools cannot be told: %s", error)
        return 1.0
    if bare is None or whole is None or whole <= bare:
        return 1.0
    return (whole - bare) / told
