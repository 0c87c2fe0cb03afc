"""Any language model can call your functions.

    import toolspeak as ts

    def weather(city: str) -> str:
        "Get the current weather in a city."
        return f"Sunny in {city}, 21 °C"

    print(ts.run("What is the weather in Xiamen?", tools=[weather]).text)

The names below are loaded when they are first used: importing toolspeak loads the standard library only.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "errors": (
        "Attempt BadRequest CallError DuplicateTool GenerationError InvalidCall InvalidTool KeyRefused LimitReached "
        "MissingExtra ModelError ModelUnreachable NoCall NotApproved PromptTooLong RateLimited ServerFailed StreamCut "
        "TemplateError ToolError ToolTimeout ToolspeakError UnknownDialect UnknownModel UnknownTool UsageError WeightsError"
    ),
    "events": "ArgumentsDelta CallEnd CallResult CallStart Event Finished Noted TextDelta ThoughtDelta",
    "types": "Message Note Problem Reply Request Step Tool ToolCall ToolResult Usage",
    "schema.infer": "Injected tool",
    "toolbox": "Toolbox Validation",
    "models.base": "Model",
    "models.names": "model",
    "models.local": "Local",
    "models.http": "Http",
    "models.scripted": "Scripted",
    "models.speaker": "Speaker",
    "plan.loop": "Limits",
    "search.index": "ToolIndex",
    "wire.collect": "collect",
    "wire.syntax": "Dialect",
    "wire.detect": "detect",
    "text": "Decoder dialect dialects grammar parse render",
    "verbs": (
        "acall aconclude adecide aextract agenerate agenerate_checked arun astream "
        "call conclude decide extract generate generate_checked run stream"
    ),
    "explain": "explain",
    "sources.openapi": "openapi",
    "sources.modules": "module",
    "sources.mcp": "mcp",
}
_WHERE = {name: home for home, names in _HOME.items() for name in names.split()}

__all__ = sorted(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if home := _WHERE.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})


class _Package(ModuleType):
    """Keeps a public name what it is: importing the module `toolspeak.dialects` would bind it over the function."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


if TYPE_CHECKING:  # what the names are, for type checkers and editors
    from .errors import (
        Attempt as Attempt,
    )
    from .errors import (
        BadRequest as BadRequest,
    )
    from .errors import (
        CallError as CallError,
    )
    from .errors import (
        DuplicateTool as DuplicateTool,
    )
    from .errors import (
        GenerationError as GenerationError,
    )
    from .errors import (
        InvalidCall as InvalidCall,
    )
    from .errors import (
        InvalidTool as InvalidTool,
    )
    from .errors import (
        KeyRefused as KeyRefused,
    )
    from .errors import (
        LimitReached as LimitReached,
    )
    from .errors import (
        MissingExtra as MissingExtra,
    )
    from .errors import (
        ModelError as ModelError,
    )
    from .errors import (
        ModelUnreachable as ModelUnreachable,
    )
    from .errors import (
        NoCall as NoCall,
    )
    from .errors import (
        NotApproved as NotApproved,
    )
    from .errors import (
        PromptTooLong as PromptTooLong,
    )
    from .errors import (
        RateLimited as RateLimited,
    )
    from .errors import (
        ServerFailed as ServerFailed,
    )
    from .errors import (
        StreamCut as StreamCut,
    )
    from .errors import (
        TemplateError as TemplateError,
    )
    from .errors import (
        ToolError as ToolError,
    )
    from .errors import (
        ToolspeakError as ToolspeakError,
    )
    from .errors import (
        ToolTimeout as ToolTimeout,
    )
    from .errors import (
        UnknownDialect as UnknownDialect,
    )
    from .errors import (
        UnknownModel as UnknownModel,
    )
    from .errors import (
        UnknownTool as UnknownTool,
    )
    from .errors import (
        UsageError as UsageError,
    )
    from .errors import (
        WeightsError as WeightsError,
    )
    from .events import (
        ArgumentsDelta as ArgumentsDelta,
    )
    from .events import (
        CallEnd as CallEnd,
    )
    from .events import (
        CallResult as CallResult,
    )
    from .events import (
        CallStart as CallStart,
    )
    from .events import (
        Event as Event,
    )
    from .events import (
        Finished as Finished,
    )
    from .events import (
        Noted as Noted,
    )
    from .events import (
        TextDelta as TextDelta,
    )
    from .events import (
        ThoughtDelta as ThoughtDelta,
    )
    from .explain import explain as explain
    from .models.base import Model as Model
    from .models.http import Http as Http
    from .models.local import Local as Local
    from .models.names import model as model
    from .models.scripted import Scripted as Scripted
    from .models.speaker import Speaker as Speaker
    from .plan.loop import Limits as Limits
    from .schema.infer import (
        Injected as Injected,
    )
    from .schema.infer import (
        tool as tool,
    )
    from .search.index import ToolIndex as ToolIndex
    from .sources.mcp import mcp as mcp
    from .sources.modules import (
        module as module,
    )
    from .sources.openapi import (
        openapi as openapi,
    )
    from .text import (
        Decoder as Decoder,
    )
    from .text import (
        dialect as dialect,
    )
    from .text import (
        dialects as dialects,
    )
    from .text import (
        grammar as grammar,
    )
    from .text import (
        parse as parse,
    )
    from .text import (
        render as render,
    )
    from .toolbox import (
        Toolbox as Toolbox,
    )
    from .toolbox import (
        Validation as Validation,
    )
    from .types import (
        Message as Message,
    )
    from .types import (
        Note as Note,
    )
    from .types import (
        Problem as Problem,
    )
    from .types import (
        Reply as Reply,
    )
    from .types import (
        Request as Request,
    )
    from .types import (
        Step as Step,
    )
    from .types import (
        Tool as Tool,
    )
    from .types import (
        ToolCall as ToolCall,
    )
    from .types import (
        ToolResult as ToolResult,
    )
    from .types import (
        Usage as Usage,
    )
    from .verbs import (
        acall as acall,
    )
    from .verbs import (
        aconclude as aconclude,
    )
    from .verbs import (
        adecide as adecide,
    )
    from .verbs import (
        aextract as aextract,
    )
    from .verbs import (
        agenerate as agenerate,
    )
    from .verbs import (
        agenerate_checked as agenerate_checked,
    )
    from .verbs import (
        arun as arun,
    )
    from .verbs import (
        astream as astream,
    )
    from .verbs import (
        call as call,
    )
    from .verbs import (
        conclude as conclude,
    )
    from .verbs import (
        decide as decide,
    )
    from .verbs import (
        extract as extract,
    )
    from .verbs import (
        generate as generate,
    )
    from .verbs import (
        generate_checked as generate_checked,
    )
    from .verbs import (
        run as run,
    )
    from .verbs import (
        stream as stream,
    )
    from .wire.collect import collect as collect
    from .wire.detect import detect as detect
    from .wire.syntax import Dialect as Dialect
