"""`render` and `parse`: tool calls for the stages of `ray.data.llm.build_processor`, which have no tools themselves.

    processor = build_processor(config, preprocess=ts.ray.render(tools, dialect), postprocess=ts.ray.parse(tools, dialect))

Both are pure functions of a row that can be sent to a worker. The engine only has to continue a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..batch.prompts import Prompt, prompt as read_prompt
from ..batch.row import Row
from ..batch.task import RowOutcome, fill_record
from ..errors import GenerationError, ServerFailed, UsageError
from ..plan import decide as deciding
from ..schema.infer import as_tools
from ..text import dialect as named_dialect, parse as parse_text, render as render_text
from ..types import Message, Reply, Request, Tool, Usage
from ..wire.dialect import Dialect
from .columns import OUTPUT

Rows = dict[str, Any]
Tools = tuple[Tool[..., Any], ...]
ENGINE = {
    *("messages", "prompt", "sampling_params", "payload", "http_response"),
    *("tokenized_prompt", "prompt_token_ids", "generated_tokens"),
}
"""Columns of the engine's stages, which `parse` removes."""
FAILED = "__inference_error__"
"""Ray's column for a failed row, which the stages pass on unchanged."""
ADDED = tuple(name for name in OUTPUT if name not in ("attempts", "seconds", "fingerprint"))


def render(
    tools: Any,
    dialect: str | Dialect,
    prompt: str = "text",
    *,
    system: str | None = None,
    template: str | None = None,
    thinking: bool | None = None,
    variables: Mapping[str, Any] | None = None,
    sampling: Mapping[str, Any] | None = None,
    payload: Mapping[str, Any] | None = None,
) -> Render:
    """Return the `preprocess` function that adds tools to a row's prompt, in the dialect, for an engine's stage.

    `prompt` is a column, or a text with columns in braces. A row gets `prompt`, the exact text for an engine without
    its stage for chat templates; `messages`, the same for an engine with it; and `sampling_params`: `sampling` and the
    dialect's stop strings. With `payload`, for the HTTP stage, it gets a `payload` of these fields and the messages.
    `template` is the model's own chat template; it, `thinking` and `variables` are as in `ts.render`. A row without a
    text is passed on with an error in Ray's column for it. Raises UsageError for a missing column.
    """
    return Render(
        read_prompt(prompt), _tools(tools), _dialect(dialect), system, template, thinking, dict(variables or {}),
        dict(sampling or {}), None if payload is None else dict(payload),
    )  # fmt: skip


def parse(tools: Any, dialect: str | Dialect) -> Parse:
    """Return the `postprocess` function that parses calls from an engine's output, and checks them.

    A row keeps its columns, except those of the stages, and gets `calls` (JSON text), `text`, `thought`, `finish`,
    `notes`, `error`, `tokens`, `prompt_tokens` and `completion_tokens`, as in the output of `ts.batch`; they replace
    columns of the same name. Calls that do not match their tools are an error: the model is not asked again here.
    """
    return Parse(_tools(tools), _dialect(dialect))


@dataclass(frozen=True, slots=True)
class Render:
    """The function of a row that `render` returns."""

    prompt: Prompt
    tools: Tools
    dialect: Dialect
    system: str | None
    template: str | None
    thinking: bool | None
    variables: dict[str, Any]
    sampling: dict[str, Any]
    payload: dict[str, Any] | None

    def __call__(self, row: Rows) -> Rows:
        """Return the columns for the row."""
        if wrong := self.prompt.missing(row):
            raise UsageError(wrong)
        try:
            messages = self.prompt.messages(_plain(row))
        except UsageError as error:
            return {FAILED: f"{type(error).__name__}: {error}"}
        first: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        rendered = render_text(
            [*first, *messages], self.tools, self.dialect, self.template, self.thinking, variables=self.variables
        )
        stop = {"stop": list(rendered.stop)} if rendered.stop else {}
        if self.payload is not None:
            return {"payload": {**stop, **self.payload, "messages": rendered.messages}}
        sampling = {"skip_special_tokens": False, **stop, **self.sampling}
        return {"prompt": rendered.prompt, "messages": rendered.messages, "sampling_params": sampling}


@dataclass(frozen=True, slots=True)
class Parse:
    """The function of a row that `parse` returns."""

    tools: Tools
    dialect: Dialect

    def __call__(self, row: Rows) -> Rows:
        """Return the row with its calls."""
        usage = Usage()
        reply = error = None
        try:
            text, finish, usage = _generated(row)
            reply = self._checked(text, finish, row.get("prompt"))
        except (GenerationError, ServerFailed) as failure:
            error = failure
        record = fill_record(Row(0, 0, row, ""), RowOutcome(reply, error, [usage]), "")
        columns = {name: value for name, value in row.items() if name not in ENGINE}
        return {**columns, **{name: getattr(record, name) for name in ADDED}}

    def _checked(self, text: str, finish: str, prompt: Any) -> Reply:
        """Return the reply with its calls checked. Raises GenerationError if they do not match."""
        reply = parse_text(text, self.dialect, self.tools, prompt if isinstance(prompt, str) else None)
        if finish == "length":
            reply = replace(reply, finish="length")
        plan = deciding.decide(Request(messages=[], tools=self.tools), tries=1)
        next(plan)
        try:
            plan.send(reply)
        except StopIteration as end:
            return end.value
        raise AssertionError("a plan of one try asks once")


def _generated(row: Rows) -> tuple[str, str, Usage]:
    """Return the text of the engine or server, the finish reason, and the usage. Raises ServerFailed for a server's
    error."""
    if "generated_text" in row:
        usage = Usage(_count(row, "num_input_tokens"), _count(row, "num_generated_tokens"))
        return _word(row, "generated_text"), _word(row, "finish_reason"), usage
    if "http_response" in row:
        return _answered(row["http_response"])
    raise UsageError(
        "parse: expected the column generated_text of an engine's stage or http_response of the HTTP stage; "
        f"the columns are: {', '.join(row)}"
    )


def _answered(body: Any) -> tuple[str, str, Usage]:
    """Return the same for a server's response."""
    try:
        choice = body["choices"][0]
        text = _word(choice["message"], "content") if "message" in choice else _word(choice, "text")
        usage = body.get("usage")
        cost = Usage(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens")) if usage else Usage()
        return text, _word(choice, "finish_reason"), cost
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ServerFailed(f"the server answered without a reply: {body!r:.300}") from None


def _word(fields: Mapping[str, Any], name: str) -> str:
    """Return a text field that may be missing or empty."""
    value = fields.get(name)
    return "" if value is None else str(value)


def _count(fields: Mapping[str, Any], name: str) -> int:
    """Return a number that may be missing."""
    value = fields.get(name)
    return 0 if value is None else int(value)


def _plain(row: Rows) -> Rows:
    """Return the row with Python lists in place of Ray's arrays."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in row.items()}


def _tools(tools: Any) -> Tools:
    """Return the tools without their functions, which are not run and may not exist on a worker."""
    return tuple(replace(tool, function=None) for tool in as_tools(tools) or ())


def _dialect(dialect: str | Dialect) -> Dialect:
    if isinstance(dialect, str | Dialect):  # pyright: ignore[reportUnnecessaryIsInstance]
        return named_dialect(dialect)
    raise UsageError(f"dialect: expected a name or a Dialect, received {type(dialect).__name__}; see ts.dialects()")
