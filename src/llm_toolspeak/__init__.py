"""A plugin for `llm` (https://llm.datasette.io): the model `toolspeak`, which is any model that toolspeak can ask, with calls and
schemas, and the toolbox `Toolspeak`, which is any tools that `--tools` takes, for every model of llm.

llm loads it by its entry point. A model without native tools gets them here: toolspeak writes them into the prompt, reads the
calls from the text and checks them. llm runs them and asks again.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from pydantic import BaseModel, Field

import toolspeak as ts
from toolspeak.api.images import image_url
from toolspeak.tool_results import result_text

llm: Any = importlib.import_module("llm")


class Settings(BaseModel):
    """The options of the model, `llm -o NAME VALUE`."""

    model: str | None = Field(
        None, description="Which model to ask, such as ollama:NAME [$TOOLSPEAK_MODEL, else local]"
    )
    dialect: str | None = Field(None, description="The dialect in which the model writes calls")
    temperature: float | None = Field(None, ge=0, description="Higher is more varied")
    max_tokens: int | None = Field(None, ge=1, description="The most tokens of a reply")
    seed: int | None = Field(None, description="For the same reply again")


class Shared:
    """What the model is and can do, awaited or not."""

    model_id = "toolspeak"
    can_stream = True
    supports_schema = True
    supports_tools = True
    attachment_types = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

    class Options(llm.Options, Settings):
        """See Settings."""


class Toolspeak(Shared, llm.Model):
    """The model."""

    def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> Iterator[str]:
        """The text of the reply; its calls go to the response."""
        messages, options = _request(prompt)
        if prompt.schema:
            yield json.dumps(ts.extract(messages, prompt.schema, **options), ensure_ascii=False)
        elif prompt.tools:
            yield _text(ts.decide(messages, tools=[_tool(one) for one in prompt.tools], **options), response)
        else:
            for event in ts.stream(messages, **options):
                yield _piece(event, response)


class AsyncToolspeak(Shared, llm.AsyncModel):
    """The model for async code."""

    async def execute(self, prompt: Any, stream: bool, response: Any, conversation: Any) -> AsyncIterator[str]:
        """As that of `Toolspeak`, awaited."""
        messages, options = _request(prompt)
        if prompt.schema:
            yield json.dumps(await ts.aextract(messages, prompt.schema, **options), ensure_ascii=False)
        elif prompt.tools:
            yield _text(await ts.adecide(messages, tools=[_tool(one) for one in prompt.tools], **options), response)
        else:
            async for event in ts.astream(messages, **options):
                yield _piece(event, response)


def _request(prompt: Any) -> tuple[list[ts.Message], dict[str, Any]]:
    """The messages of a prompt, and the options with which toolspeak asks."""
    options = prompt.options.model_dump(exclude_none=True)
    options["model"] = _model(options.pop("model", None), options.pop("dialect", None))
    return [row for message in prompt.messages for row in _rows(message)], options


def _text(reply: ts.Reply, response: Any) -> str:
    """The text of a reply, whose calls and usage go to the response."""
    for call in reply.calls:
        response.add_tool_call(llm.ToolCall(tool_call_id=call.id, name=call.name, arguments=dict(call.arguments)))
    _count(response, reply.usage)
    return reply.text


def _piece(event: ts.Event, response: Any) -> str:
    """The text of an event; the usage at the end goes to the response."""
    if isinstance(event, ts.Finished):
        _count(response, event.usage)
    return event.text if isinstance(event, ts.TextDelta) else ""


@cache
def _model(name: str | None, dialect: str | None) -> ts.Model:
    """The model of this name. It is the same for each step of a chain, so that a server is looked at once."""
    return ts.model(name, dialect=dialect)


def _count(response: Any, usage: ts.Usage) -> None:
    response.set_usage(input=usage.prompt_tokens, output=usage.completion_tokens)


def _tool(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}


def _rows(message: Any) -> Iterator[ts.Message]:
    """A message of llm as ours; one with several results is several."""
    text = ""
    images: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        row: dict[str, Any] = part.to_dict()
        match row["type"]:
            case "text":
                text += row["text"]
            case "attachment":
                file = part.attachment
                url = file.url or image_url(file.base64_content(), file.resolve_type().removeprefix("image/"))
                images.append({"type": "image_url", "image_url": {"url": url}})
            case "tool_call":
                function = {"name": row["name"], "arguments": json.dumps(row["arguments"])}
                calls.append({"id": row.get("tool_call_id", ""), "type": "function", "function": function})
            case "tool_result":
                key = row.get("tool_call_id", "")
                yield {"role": "tool", "tool_call_id": key, "name": row["name"], "content": row["output"]}
            case _:  # thoughts are not sent back
                pass
    content = [{"type": "text", "text": text}, *images] if images else text
    if calls:
        yield {"role": message.role, "content": content, "tool_calls": calls}
    elif content:
        yield {"role": message.role, "content": content}


class Tools(llm.Toolbox):
    """Tools of a Python file, an OpenAPI document or an MCP server: `-T 'Toolspeak("weather.py")'`."""

    def __init__(self, tools: str = "") -> None:
        self._source, self._loaded = tools, list[Any]()

    def tools(self) -> list[Any]:
        """The tools for a prompt, loaded when it is the first."""
        if not self._source:
            raise ts.UsageError(
                'which tools? Expected Toolspeak("FILE.py"), "mcp:COMMAND", "mcp:URL" or "openapi:FILE"'
            )
        if not self._loaded:
            # Every command of llm loads this plugin, and most need no tools.
            from toolspeak.cli.tool_sources import runnable, toolbox

            box = runnable(toolbox([self._source]))
            self._loaded += (
                llm.Tool(one.name, one.description, dict(one.parameters), _runs(box, one.name), "toolspeak")
                for one in box
            )
        return self._loaded


def _runs(box: ts.Toolbox, name: str) -> Any:
    """What llm calls with the arguments of a call; they are checked before the tool runs."""

    def run(**arguments: Any) -> str:
        return result_text(box.call({"name": name, "arguments": arguments}))

    return run


@llm.hookimpl
def register_models(register: Any) -> None:
    """Called by llm."""
    register(Toolspeak(), AsyncToolspeak())


@llm.hookimpl
def register_tools(register: Any) -> None:
    """Called by llm."""
    register(Tools, name="Toolspeak")
