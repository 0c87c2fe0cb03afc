"""Makes of any model one that calls tools.

A server's is asked as it is found out (`fallback`), any other as `strategy` decides from what is known of it, each as its
profile of `toolspeak tune` says.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from ..errors import ToolspeakError, UsageError
from .base import Model
from .fallback import Adaptive
from .http import Http
from .servers.capabilities import ServerCapabilities
from .speaker import Speaker
from .strategy import NO_PREFERENCES, Known, Preferences, Strategy, known_of, strategy
from .tuned_profiles import recall as recall_profile, warn

log = logging.getLogger(__name__)


def adapted(model: Model, preferred: Preferences = NO_PREFERENCES, *, look: bool = True, follow: bool = True) -> Model:
    """A model asked as its user wants, a server's in an Adaptive; where all is open, as its profile says, unless `follow`
    is False. A model that is asked as it is in itself is itself."""
    if preferred != NO_PREFERENCES:
        return Adaptive(model, preferred, look=look) if isinstance(model, Http) else _prompted(model, preferred)
    if isinstance(model, Http) and "tools" not in model.capabilities:
        return model
    if follow and (profile := recall_profile(model)):
        try:
            tuned = as_tuned(model, profile.strategy)
        except ToolspeakError as error:
            warn(str(profile.path), str(error))
        else:
            log.info("%s is asked as it was tuned: %s (%s)", model.name, profile.strategy.label, profile.path)
            return tuned
    return Adaptive(model, look=look) if isinstance(model, Http) else model


def _prompted(model: Model, preferred: Preferences) -> Speaker:
    """A text model that tools are written for; its file is read only where its template has to be known."""
    known = Known() if preferred.dialect is not None else replace(known_of(model), tools=None)
    return Speaker(model, strategy=strategy(known, preferred))


def calling(model: Model) -> Model:
    """The model as one that calls tools: natively, prompted or scored, as `strategy` decides from what is known of
    it."""
    adaptive = adapted(model)
    return adaptive if "tools" in adaptive.capabilities else Speaker(adaptive)


def around_innermost(model: Model, wrap: Callable[[Model], Model]) -> Model:
    """The tool-calling model with something around whatever is asked in the end, such as the text model below; the given
    one stays as it is."""
    if isinstance(model, Adaptive):
        return model.wrapped(wrap)
    if not isinstance(model, Speaker):
        return wrap(model)
    outer = copy.copy(model)
    outer.model = wrap(model.model)
    return outer


def as_tuned(model: Model, chosen: Strategy) -> Model:
    """A text model or a server, asked as `toolspeak tune` chose. Raises UsageError where it cannot be."""
    if isinstance(model, Http):
        names = {each.name for each in fields(ServerCapabilities)}
        known = {name: value for name, value in chosen.server.items() if name in names}
        usual: dict[str, Any] = {"address": model.address.public, "model": model.model or "", "api": model.api}
        if chosen.way == "native":
            return Adaptive(model, Preferences(profile=chosen.profile), look=False)
        exact = None if chosen.way == "scored" else False
        preferred = Preferences(chosen.way, chosen.dialect, "", exact, chosen.constrained, chosen.profile)
        return Adaptive(model, preferred, server_capabilities=ServerCapabilities(**{**usual, **known}))
    if chosen.way == "native":
        raise UsageError(f"{model.name} cannot be asked in the form 'native'")
    dialect = None if chosen.template else chosen.dialect
    return _prompted(model, Preferences(chosen.way, dialect, constrained=chosen.constrained, profile=chosen.profile))
