"""The ratio of a model's tokens to estimated ones. The tokenizer is asked once, when definitions come close to the
budget."""

from __future__ import annotations

import logging
from collections import OrderedDict

from ..errors import ToolspeakError
from ..models.base import Around, Counter, Model
from ..plan.token_estimate import about_tool
from ..types import Message, Request
from .index_cache import Toolset

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
    return model.name in _ratios or _counter(model) is None or told < NEAR * bound


def _counter(model: Model) -> Counter | None:
    """The model, if it counts tokens; what is put around it only passes that on."""
    inner = model
    while isinstance(inner, Around):
        inner = inner.model
    if not isinstance(inner, Counter):
        return None
    return model if isinstance(model, Counter) else None


async def learn(model: Model, tools: Toolset, bound: int) -> bool:
    """Asks the model's tokenizer, where that can tell and the `tools` come near the `bound`; whether anything was
    learnt."""
    told = sum(map(about_tool, tools))
    counter = _counter(model)
    if counter is None or model.name in _ratios or told < NEAR * bound:
        return False
    if "scored" in model.capabilities:  # it is shown one tool at a time
        return False
    _ratios[model.name] = found = await _measured(counter, tools, told)
    while len(_ratios) > MOST:
        _ratios.popitem(last=False)
    log.debug("%s has %.2f tokens for one that is estimated", model.name, found)
    return found != 1.0


async def _measured(model: Counter, tools: Toolset, told: int) -> float:
    try:
        bare = await model.count(Request([PLAIN]))
        whole = await model.count(Request([PLAIN], tools))
    except ToolspeakError as error:
        log.debug("the tokens of tools cannot be told: %s", error)
        return 1.0
    if bare is None or whole is None or whole <= bare:
        return 1.0
    return (whole - bare) / told
