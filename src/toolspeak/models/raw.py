"""A model behind /v1/completions: conversations become exact prompts, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..dialects import get
from ..wire.detect import ANY, detect
from ..wire.syntax import Dialect
from .http import Http
from .speaker import Speaker


class Raw(Speaker):
    """A tool-calling model of a server that continues prompts. `template` is its own; without one, prompts are laid
    out as the dialect says, which is told by `dialect`, else by the template, else by the model's name."""

    def __init__(
        self,
        model: Http,
        template: str = "",
        dialect: str | Dialect | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        told = bool(template or model.model)
        spoken = detect(template or None, model.model) if dialect is None and told else get(dialect or ANY)
        super().__init__(model.completing(), spoken, template=template or None, variables=variables, raw=True)
