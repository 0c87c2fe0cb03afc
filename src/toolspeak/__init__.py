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
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "errors": (
        "Attempt BadRequest CallError DuplicateTool GenerationError InvalidCall InvalidTool KeyRefused LimitReached "
        "MissingExtra ModelError ModelUnreachable NoCall NotApproved RateLimited ServerFailed StreamCut TemplateError "
        "ToolError ToolTimeout ToolspeakError UnknownDialect UnknownModel UnknownTool UsageError WeightsError"
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
    "wire.collect": "collect",
    "wire.syntax": "Dialect",
    "wire.detect": "detect",
    "text": "Decoder dialect dialects parse render",
    "verbs": (
        "acall aconclude adecide aextract agenerate agenerate_checked arun astream "
        "call conclude decide extract generate generate_checked run stream"
    ),
    "explain": "explain",
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


if TYPE_CHECKING:  # what the names are, for type checkers and editors
    from .errors import (
        Attempt as Attempt,
        BadRequest as BadRequest,
        CallError as CallError,
        DuplicateTool as DuplicateTool,
        GenerationError as GenerationError,
        InvalidCall as InvalidCall,
        InvalidTool as InvalidTool,
        KeyRefused as KeyRefused,
        LimitReached as LimitReached,
        MissingExtra as MissingExtra,
        ModelError as ModelError,
        ModelUnreachable as ModelUnreachable,
        NoCall as NoCall,
        NotApproved as NotApproved,
        RateLimited as RateLimited,
        ServerFailed as ServerFailed,
        StreamCut as StreamCut,
        TemplateError as TemplateError,
        ToolError as ToolError,
        ToolTimeout as ToolTimeout,
        ToolspeakError as ToolspeakError,
        UnknownDialect as UnknownDialect,
        UnknownModel as UnknownModel,
        UnknownTool as UnknownTool,
        UsageError as UsageError,
        WeightsError as WeightsError,
    )
    from .events import (
        ArgumentsDelta as ArgumentsDelta,
        CallEnd as CallEnd,
        CallResult as CallResult,
        CallStart as CallStart,
        Event as Event,
        Finished as Finished,
        Noted as Noted,
        TextDelta as TextDelta,
        ThoughtDelta as ThoughtDelta,
    )
    from .types import (
        Message as Message,
        Note as Note,
        Problem as Problem,
        Reply as Reply,
        Request as Request,
        Step as Step,
        Tool as Tool,
        ToolCall as ToolCall,
        ToolResult as ToolResult,
        Usage as Usage,
    )
    from .schema.infer import (
        Injected as Injected,
        tool as tool,
    )
    from .toolbox import (
        Toolbox as Toolbox,
        Validation as Validation,
    )
    from .models.base import Model as Model
    from .models.names import model as model
    from .models.local import Local as Local
    from .models.http import Http as Http
    from .models.scripted import Scripted as Scripted
    from .models.speaker import Speaker as Speaker
    from .plan.loop import Limits as Limits
    from .wire.collect import collect as collect
    from .wire.syntax import Dialect as Dialect
    from .wire.detect import detect as detect
    from .text import (
        Decoder as Decoder,
        dialect as dialect,
        dialects as dialects,
        parse as parse,
        render as render,
    )
    from .verbs import (
        acall as acall,
        aconclude as aconclude,
        adecide as adecide,
        aextract as aextract,
        agenerate as agenerate,
        agenerate_checked as agenerate_checked,
        arun as arun,
        astream as astream,
        call as call,
        conclude as conclude,
        decide as decide,
        extract as extract,
        generate as generate,
        generate_checked as generate_checked,
        run as run,
        stream as stream,
    )
    from .explain import explain as explain
