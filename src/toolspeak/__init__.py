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

TYPE_CHECKING = False
"""What `typing` has under this name: importing `typing` takes longer than this module."""

__version__ = "0.1.0"

_HOME = {
    "errors": (
        "ApprovalNeeded Attempt BadRequest CallError DuplicateTool GenerationError InvalidCall InvalidTool KeyRefused LimitReached "
        "MissingExtra ModelError ModelUnreachable NoCall NotApproved NotRecorded PromptTooLong RateLimited ServerFailed StaleApproval "
        "StreamCut TemplateError ToolError ToolTimeout ToolspeakError UnknownDialect UnknownModel UnknownTool UsageError WeightsError"
    ),
    "events": "ArgumentsDelta CallEnd CallResult CallStart Event Finished Noted TextDelta ThoughtDelta",
    "types": "Message Note Pending Problem Reply Request Step Tool ToolCall ToolResult Usage",
    "schema.infer": "Injected tool",
    "toolbox": "Toolbox Validation",
    "models.base": "Model",
    "models.recording": "record",
    "models.replay": "replay",
    "models.resolve": "model",
    "models.embedded.local": "Local",
    "models.http": "Http",
    "models.scripted": "Scripted",
    "models.traced": "traced",
    "models.speaker": "Speaker",
    "plan.loop": "Limits",
    "policy.policy": "Decision Policy",
    "search.index": "ToolIndex",
    "wire.reading.collect": "collect",
    "wire.dialect": "Dialect",
    "wire.detect": "detect",
    "text": "Decoder dialect dialects grammar parse render",
    "verbs": (
        "acall aconclude adecide agenerate agenerate_checked arun astream "
        "call conclude decide generate generate_checked run stream"
    ),
    "extracting": "aextract astream_extract extract stream_extract",
    "explain": "explain",
    "approvals": "Answer Edit",
    "resume": "aresume resume",
    "batch": "Summary abatch batch read_batch",
    "sources.openapi": "openapi",
    "sources.modules": "module",
    "sources.mcp": "mcp",
}
_WHERE = {name: home for home, names in _HOME.items() for name in names.split()}

__all__ = sorted(_WHERE)  # pyright: ignore[reportUnsupportedDunderAll]


_ROOMS = frozenset(["ray"])
"""Packages whose names are used through the package: `ts.ray.Decide`."""


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    if home := _WHERE.get(name):
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_ROOMS})


class _Package(ModuleType):
    """Protects public names: importing the module `toolspeak.dialects` would replace the function of that name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles the module by name, so that functions that refer to it can be sent to other processes."""
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Package


if TYPE_CHECKING:  # what the names are, for type checkers and editors
    from .approvals import (
        Answer as Answer,
        Edit as Edit,
    )
    from .batch import (
        Summary as Summary,
        abatch as abatch,
        batch as batch,
        read_batch as read_batch,
    )
    from .errors import (
        ApprovalNeeded as ApprovalNeeded,
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
        NotRecorded as NotRecorded,
        PromptTooLong as PromptTooLong,
        RateLimited as RateLimited,
        ServerFailed as ServerFailed,
        StaleApproval as StaleApproval,
        StreamCut as StreamCut,
        TemplateError as TemplateError,
        ToolError as ToolError,
        ToolspeakError as ToolspeakError,
        ToolTimeout as ToolTimeout,
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
    from .explain import explain as explain
    from .extracting import (
        aextract as aextract,
        astream_extract as astream_extract,
        extract as extract,
        stream_extract as stream_extract,
    )
    from .models.base import Model as Model
    from .models.embedded.local import Local as Local
    from .models.http import Http as Http
    from .models.recording import record as record
    from .models.replay import replay as replay
    from .models.resolve import model as model
    from .models.scripted import Scripted as Scripted
    from .models.speaker import Speaker as Speaker
    from .models.traced import traced as traced
    from .plan.loop import Limits as Limits
    from .policy.policy import (
        Decision as Decision,
        Policy as Policy,
    )
    from .resume import (
        aresume as aresume,
        resume as resume,
    )
    from .schema.infer import (
        Injected as Injected,
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
        dialect as dialect,
        dialects as dialects,
        grammar as grammar,
        parse as parse,
        render as render,
    )
    from .toolbox import (
        Toolbox as Toolbox,
        Validation as Validation,
    )
    from .types import (
        Message as Message,
        Note as Note,
        Pending as Pending,
        Problem as Problem,
        Reply as Reply,
        Request as Request,
        Step as Step,
        Tool as Tool,
        ToolCall as ToolCall,
        ToolResult as ToolResult,
        Usage as Usage,
    )
    from .verbs import (
        acall as acall,
        aconclude as aconclude,
        adecide as adecide,
        agenerate as agenerate,
        agenerate_checked as agenerate_checked,
        arun as arun,
        astream as astream,
        call as call,
        conclude as conclude,
        decide as decide,
        generate as generate,
        generate_checked as generate_checked,
        run as run,
        stream as stream,
    )
    from .wire.detect import detect as detect
    from .wire.dialect import Dialect as Dialect
    from .wire.reading.collect import collect as collect
