"""Calibrates the token estimate: asks a model's tokenizer once, when definitions come close to the token limit."""

from __future__ import annotations

import logging
from collections import OrderedDict

from ..errors import ToolspeakError
from ..models.base import Around, Model, TokenCounter
from ..plan.token_estimate import about_tool
from ..types import Message, Request
from .index_memory_cache import Toolset

log = logging.getLogger(__name__)

NEAR = 0.5
"""The share of the limit from which definitions are counted. An estimate is rarely wrong by more than a factor of two.
"""
MOST = 256
"""Models whose ratio is stored."""
PLAIN: Message = {"role": "user", "content": "Hi"}

_ratios: OrderedDict[str, float] = OrderedDict()
"""By the names of models."""


def ratio(model: Model) -> float:
    """Real tokens per estimated token; 1 if the model was not asked."""
    return _ratios.get(model.name, 1.0)


def known(model: Model, estimate: float, bound: float) -> bool:
    """Whether it is certain enough that definitions of `estimate` estimated tokens stay within a limit."""
    return model.name in _ratios or _counter(model) is None or estimate < NEAR * bound


def _counter(model: Model) -> TokenCounter | None:
    """The model if it counts tokens. Its wrappers only pass counting on."""
    inner = model
    while isinstance(inner, Around):
        inner = inner.model
    if not isinstance(inner, TokenCounter):
        return None
    return model if isinstance(model, TokenCounter) else None


async def learn(model: Model, tools: Toolset, bound: int) -> bool:
    """Asks the model's tokenizer if it can count, and if the `tools` come close to the limit `bound`. Returns whether
    the ratio was learned."""
    estimate = sum(map(about_tool, tools))
    counter = _counter(model)
    if counter is None or model.name in _ratios or estimate < NEAR * bound:
        return False
    if "scored" in model.capabilities:  # it reads one tool at a time
        return False
    _ratios[model.name] = tokens = await _measured(counter, tools, estimate)
    while len(_ratios) > MOST:
        _ratios.popitem(last=False)
    log.debug("%s has %.2f tokens for each estimated one", model.name, tokens)
    return tokens != 1.0


async def _measured(model: TokenCounter, tools: Toolset, estimate: int) -> float:
    try:
        bare = await model.count(Request([PLAIN]))
        whole = await model.count(Request([PLAIN], tools))
    except ToolspeakError as error:
        log.debug("the tokens of tools cannot be counted: %s", error)
        return 1.0
    if bare is None or whole is None or whole <= bare:
        return 1.0
    return (whole - bare) / estimate
