"""Bodies of requests with a wrong value in one place: every endpoint must refuse them with a 4xx or answer them.

`SEEDS` holds bodies that together use every kind of message, part, item, block and tool of an API. `places` lists each
place of a body, `WRONG` the values that are put there. A body is changed in one place, sometimes in two: most of
what breaks a reader is one value of a type that it did not expect behind a schema that lets it pass. `changes` gives
all changes in one place, `changed` makes one at random. `upstreams` has one model for each API that an upstream may
speak, since what the client's API lets pass may break the writer of another.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from toolspeak.api import anthropic, batches, completions, embeddings, ollama, openai_chat, openai_responses
from toolspeak.api.embeddings import Vectors
from toolspeak.api.ollama import generate
from toolspeak.api.openai_responses import compact
from toolspeak.gateway.config.settings import Batches, StoreSettings
from toolspeak.models.base import Model
from toolspeak.models.fallback import Adaptive
from toolspeak.models.http import Http
from toolspeak.models.scripted import Scripted
from toolspeak.models.strategy import Preferences
from toolspeak.types import Schema

Place = tuple[str | int, ...]

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PICTURE = "data:image/png;base64,AAAA"
AT_ONCE = 8
NOTHING = object()
"""The place is taken out."""
WRONG: tuple[Any, ...] = (
    NOTHING, None, True, 0, -1, 1.5, 2**70, "", "x", "message", "text", [], ["message"], [None], [[]], [{}], {}, {"type": "text"},
    {"type": ["text"]}, {"type": {}}, {"message": []}, "\ud800", "\u00e9", "toolspeak:\u00e9", "[" * 3000, "{{", '{"a":' * 3000,
)  # fmt: skip

CHAT: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}], "name": "dev"},
            {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            {"role": "assistant", "content": None, "reasoning_content": "Hm", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
                {"id": "c2", "type": "custom", "custom": {"name": "shell", "input": "ls"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "sun"}]},
            {"role": "tool", "tool_call_id": "c2", "content": "a file"},
            {"role": "assistant", "content": [{"type": "text", "text": "Sunny"}]},
            {"role": "user", "content": "Again"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA, "strict": True}},
            {"type": "custom", "custom": {"name": "shell", "description": "d", "format": {"type": "text"}}},
        ],
        "tool_choice": "auto", "parallel_tool_calls": True,
    },
    {
        "messages": [{"role": "user", "content": "Hi"},
                     {"role": "assistant", "content": "x", "function_call": {"name": "weather", "arguments": "{}"}},
                     {"role": "function", "name": "weather", "content": "sun"}],
        "functions": [{"name": "weather", "parameters": SCHEMA}], "function_call": "auto",
    },
    {
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}],
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {
            "mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}},
    },
    {
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "Hi"}, {"type": "file", "file": {"file_data": PICTURE, "filename": "a"}},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
    },
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}}]}]},
    {
        "messages": [{"role": "user", "content": "Hi"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA, "strict": True}},
    },
    {
        "messages": [{"role": "user", "content": "Hi"}], "stream": True, "stream_options": {"include_usage": True},
        "n": 2, "temperature": 1, "top_p": 0.5,
        "max_tokens": 5, "chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "low", "verbosity": "low",
        "modalities": ["text"], "include_thinking": True, "metadata": {"a": "b"},
    },
    {
        "messages": [{"role": "user", "content": "Hi"}], "stop": ["x"], "seed": 1, "logit_bias": {"1": 1}, "logprobs": True,
        "top_logprobs": 1, "frequency_penalty": 1, "top_k": 1, "min_p": 0.1, "repetition_penalty": 1,
    },
]  # fmt: skip
RESPONSES: list[dict[str, Any]] = [
    {
        "input": [
            {"type": "message", "role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}],
             "content": [{"type": "reasoning_text", "text": "Hm"}], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}", "namespace": "ns"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "shell", "input": "ls"},
            {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "sun"}]},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "a file"},
            {"type": "message", "role": "assistant", "id": "m", "content": [
                {"type": "output_text", "text": "Sunny", "annotations": []}, {"type": "refusal", "refusal": "no"}]},
            {"type": "message", "role": "user", "content": "Again"},
        ],
        "tools": [
            {"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA, "strict": True},
            {"type": "custom", "name": "shell", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
            {"type": "custom", "name": "lark", "format": {"type": "grammar", "syntax": "lark", "definition": "start: A"}},
            {"type": "namespace", "name": "ns", "description": "d", "tools": [
                {"type": "function", "name": "weather", "description": "d", "parameters": SCHEMA}]},
        ],
        "tool_choice": "auto", "instructions": "Be kind.", "store": True,
    },
    {
        "input": "Hi", "stream": True, "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]},
        "reasoning": {"effort": "low", "summary": "auto"},
        "metadata": {"a": "b"}, "text": {"verbosity": "low", "format": {"type": "text"}}, "truncation": "auto",
    },
    {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": PICTURE, "detail": "low"}]}]},
    {
        "input": [{"role": "user", "content": [
            {"type": "input_text", "text": "Hi"}, {"type": "input_file", "file_data": PICTURE, "filename": "a"},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}],
        "include": ["message.output_text.logprobs"], "top_logprobs": 1,
    },
    {
        "input": "Hi", "previous_response_id": "PREVIOUS",
        "text": {"format": {"type": "json_schema", "name": "r", "schema": SCHEMA, "strict": True}},
    },
]  # fmt: skip
MESSAGES: list[dict[str, Any]] = [
    {
        "max_tokens": 5, "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Hi"},
                {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "d"}]}},
                {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "d"}]}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                {"type": "text", "text": "Wait"}, {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": [{"type": "text", "text": "sun"}]},
                {"type": "text", "text": "And?"}]},
            {"role": "system", "content": "Be kind."},
        ],
        "tools": [{"name": "weather", "type": "custom", "description": "d", "input_schema": SCHEMA, "strict": True}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    },
    {
        "max_tokens": 5, "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "c1", "name": "web_search", "input": {"query": "Rome"}},
                {"type": "web_search_tool_result", "tool_use_id": "c1", "content": [
                    {"type": "web_search_result", "title": "t", "url": "https://example.org", "encrypted_content": "toolspeak:c3Vu",
                     "page_age": None}]},
                {"type": "text", "text": "Sun", "citations": [
                    {"type": "web_search_result_location", "cited_text": "sun", "url": "https://example.org", "title": "t",
                     "encrypted_index": "x"}]}]},
            {"role": "user", "content": "And?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
    },
    {
        "max_tokens": 5, "messages": [{"role": "user", "content": [
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}]}],
    },
    {
        "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}], "stream": True, "system": "s", "top_k": 3,
        "thinking": {"type": "enabled", "budget_tokens": 1024, "display": "omitted"}, "stop_sequences": [],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}, "effort": "low"}, "temperature": 1,
        "metadata": {"user_id": "u"}, "mcp_servers": [], "output_format": {"type": "json_schema", "schema": SCHEMA},
    },
]  # fmt: skip
PROMPTS: list[dict[str, Any]] = [
    {"prompt": ["Hi", "Ho"], "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 3, "stop": "x"},
    {"prompt": "Hi", "n": 1, "best_of": 1, "echo": False, "logprobs": 1, "suffix": "", "logit_bias": {"1": 1}},
]
TEXTS: list[dict[str, Any]] = [{"input": ["Hi", "Ho"], "dimensions": 3, "encoding_format": "float"}, {"input": "Hi"}]

OLLAMA: list[dict[str, Any]] = [
    {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi", "images": ["iVBORw0KGgo="]},
            {"role": "assistant", "content": "", "thinking": "Hm", "tool_calls": [
                {"id": "c1", "function": {"index": 0, "name": "weather", "arguments": {"city": "Rome"}}},
                {"function": {"name": "weather", "arguments": {}}}]},
            {"role": "tool", "content": "sun", "tool_name": "weather", "tool_call_id": "c1"},
            {"role": "tool", "content": "rain", "name": "weather"},
        ],
        "tools": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": SCHEMA}}],
        "stream": False, "think": "low", "keep_alive": "5m",
    },
    {
        "messages": [{"role": "user", "content": "Hi"}], "format": SCHEMA, "think": True, "options": {
            "num_predict": 5, "seed": 1, "stop": ["x"], "temperature": 0.5, "top_p": 0.5, "top_k": 3, "num_ctx": 4096},
    },
    {"messages": [{"role": "user", "content": "Hi"}], "format": "json", "logprobs": True, "top_logprobs": 1, "think": False},
    {"messages": [], "keep_alive": 0},
]  # fmt: skip
GENERATE: list[dict[str, Any]] = [
    {"prompt": "Hi", "system": "Be brief.", "images": ["iVBORw0KGgo="], "think": True, "format": "", "stream": False,
     "suffix": "", "template": "", "context": [], "raw": False, "options": {"repeat_penalty": 1.1, "min_p": 0.1}},
    {"prompt": "Once", "raw": True, "options": {"num_predict": -1, "stop": "x", "presence_penalty": 0.5}},
    {"prompt": ""},
]  # fmt: skip

BATCHES: list[dict[str, Any]] = [
    {"input_file_id": "file-1", "endpoint": "/v1/responses", "completion_window": "24h", "metadata": {"a": "b"},
     "output_expires_after": {"anchor": "created_at", "seconds": 3600}},
]  # fmt: skip

SEEDS: dict[str, tuple[list[dict[str, Any]], Schema]] = {
    "/v1/chat/completions": (CHAT, openai_chat.BODY),
    "/v1/responses": (RESPONSES, openai_responses.BODY),
    "/v1/responses/compact": (RESPONSES, compact.BODY),
    "/v1/messages": (MESSAGES, anthropic.BODY),
    "/v1/messages/count_tokens": (MESSAGES, anthropic.COUNT_BODY),
    "/v1/completions": (PROMPTS, completions.BODY),
    "/v1/embeddings": (TEXTS, embeddings.BODY),
    "/v1/batches": (BATCHES, batches.BODY),
    "/api/chat": (OLLAMA, ollama.BODY),
    "/api/generate": (GENERATE, generate.BODY),
    "/api/embed": ([{"input": ["Hi"], "dimensions": 3, "truncate": True, "options": {}}], ollama.EMBED_BODY),
    "/api/show": ([{"verbose": True}], ollama.SHOW_BODY),
}


@dataclass(frozen=True)
class Body:
    """One request: where it goes, what it holds, and what was changed in it."""

    path: str
    body: Any
    change: str = ""


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every place of a JSON value, itself first."""
    yield at
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*at, key))


def put(value: Any, at: Place, new: Any) -> Any:
    """A copy of a JSON value with another one in a place."""
    if not at:
        return None if new is NOTHING else new
    made = copy.deepcopy(value)
    inner = made
    for key in at[:-1]:
        inner = inner[key]
    if new is NOTHING:
        del inner[at[-1]]
    else:
        inner[at[-1]] = new
    return made


def all_places(path: str) -> Iterator[tuple[dict[str, Any], Place]]:
    """Every place of every seed, and each field that the schema of the body knows and the first seed lacks."""
    seeds, schema = SEEDS[path]
    for seed in seeds:
        yield from ((seed, at) for at in places(seed))
    yield from ((seeds[0], (name,)) for name in schema["properties"] if name not in seeds[0])


def changes(path: str, model: str) -> Iterator[Body]:
    """Every wrong value in every place, one at a time."""
    for seed, at in all_places(path):
        for new in WRONG:
            if not at or new is not NOTHING or _holds(seed, at):
                yield Body(path, put({"model": model, **seed}, at, new), f"{at} = {_shown(new)}")


def changed(rng: random.Random, models: Sequence[str]) -> Body:
    """A request that is wrong in one to three places."""
    path = rng.choice(list(SEEDS))
    seed = rng.choice(SEEDS[path][0])
    body: Any = {"model": rng.choice(models), **seed}
    told: list[str] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.choice(list(places(body)))
        if not at and told:
            continue
        new = rng.choice((*WRONG, _piece(rng), _piece(rng)))
        body = put(body, at, new)
        told.append(f"{at} = {_shown(new)}")
    return Body(path, body, "; ".join(told))


def _piece(rng: random.Random) -> Any:
    """Something that is right elsewhere."""
    seed = rng.choice(SEEDS[rng.choice(list(SEEDS))][0])
    at = rng.choice(list(places(seed)))
    for key in at:
        seed = seed[key]
    return seed


def _holds(value: Any, at: Place) -> bool:
    for key in at:
        if isinstance(value, dict) and key not in value:
            return False
        value = value[key]
    return True


def _shown(new: Any) -> str:
    return "nothing" if new is NOTHING else json.dumps(new)[:200]


# ------------------------------------------------------------------ the gateway that is asked


TEXT = '{"city": "Rome"}'
"""What every model says: it fits the schema of the seeds."""


class Everything(Scripted):
    """A model in this process that can do all there is."""

    def __init__(self) -> None:
        super().__init__(TEXT, repeat=True, capabilities=["prompt"])

    async def embed(self, texts: Sequence[str], *, dimensions: int | None = None) -> Vectors:
        return Vectors(tuple((0.5,) * (dimensions or 3) for _ in texts), 3)


ANSWERS: dict[str, Any] = {
    "/v1/chat/completions": {"choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]},
    "/v1/responses": {"id": "r", "object": "response", "status": "completed", "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]}]},
    "/v1/messages": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"},
    "/v1/messages/count_tokens": {"input_tokens": 3},
    "/v1/completions": {"choices": [{"index": 0, "text": TEXT, "finish_reason": "stop"}]},
    "/api/chat": {"message": {"role": "assistant", "content": TEXT}, "done": True, "done_reason": "stop"},
}  # fmt: skip


async def _answer(request: web.Request) -> web.Response:
    await request.read()
    told = ANSWERS.get(request.path)
    return web.json_response(told) if told else web.json_response({"error": {"message": "none"}}, status=404)


TEMPLATE = """{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}
{%- if m.content is string %}{{ m.content }}{% else %}
{%- for p in m.content or [] %}{{ p.text if p.type == 'text' else '<image>' }}{% endfor %}{% endif %}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function.name + c.function.arguments | tojson + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
"""A chat template as models have them, which adds texts to one another."""


@asynccontextmanager
async def upstreams() -> AsyncIterator[dict[str, Model]]:
    """Models by the API that they are asked in, behind a server on loopback that always says the same."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", _answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    made: dict[str, Model] = {"prompted": Everything()}
    for api in ("openai", "responses", "anthropic", "ollama"):
        made[api] = Http(url, "up", api=api, retries=0)
    made["template"] = Adaptive(Http(url, "up", retries=0), Preferences("prompted", template=TEMPLATE, exact=True))
    try:
        yield made
    finally:
        await runner.cleanup()


def settings(folder: str) -> dict[str, Any]:
    """What the gateway is told beside its models."""
    store = StoreSettings(f"{folder}/store.sqlite", responses=True, size=4_000_000)
    return {"store": store, "batches": Batches(f"{folder}/batches")}


def wrong(status: int, text: str) -> str:
    """What is wrong with an answer: a client's mistake is a 4xx, whatever it is."""
    if status >= 500 and "no valid reply" not in text:
        return f"{status}: {text[:300]}"
    return f"in a stream: {text[-300:]}" if "internal_error" in text else ""


async def problem(session: aiohttp.ClientSession, url: str, case: Body) -> str:
    """Asks a gateway; what is wrong with its answer, "" for nothing."""
    raw, told = json.dumps(case.body).encode(), ""
    for _ in range(AT_ONCE + 1):  # on a busy machine every kept connection may be one that was just closed
        try:
            async with session.post(
                url + case.path, data=raw, headers={"content-type": "application/json"}
            ) as response:
                return wrong(response.status, await response.text(errors="replace"))
        except aiohttp.ClientConnectionError as error:
            told = f"no answer: {error}"
    return told


async def problems(session: aiohttp.ClientSession, url: str, cases: Iterable[Body]) -> list[tuple[Body, str]]:
    """The cases whose answers are wrong, some asked side by side."""
    found: list[tuple[Body, str]] = []
    rest = iter(cases)

    async def ask() -> None:
        for case in rest:
            if told := await problem(session, url, case):
                found.append((case, told))

    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
    return found
