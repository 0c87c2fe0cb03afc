"""Displays values in a terminal (`repr`) and in a notebook (`_repr_html_`).

The text of a model or a tool is untrusted: in HTML all of it is escaped. Long texts are truncated in both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, cast

LONGEST = 600
"""The most characters of one text in a terminal."""
LONGEST_HTML = 20_000
MARKS = {"call": "→", "result": "←", "error": "✗", "note": "note:", "thought": "thought:", "pending": "waits:"}
"""The mark before a row, by its kind. Plain text has none."""
Row = tuple[str, str]
"""(kind, text)."""

_REVERSING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = {
    **{i: chr(0x2400 + i) for i in range(32) if chr(i) not in "\n\t"},
    0x7F: "\u2421",
    **{i: f"\\x{i:02x}" for i in range(0x80, 0xA0)},
    **{i: f"\\u{i:04x}" for i in _REVERSING},
}


_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U0001d159\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, and that have no look of their own."""


def visible(text: str) -> str:
    """Text that is safe on a terminal: control characters, and those that reverse text, can be seen."""
    return text.translate(_CONTROLS)


def unhidden(text: str) -> str:
    """Text of which everything can be seen: characters without a look of their own, too."""
    return "".join(map(_with_a_look, visible(text)))


def on_one_line(text: str) -> str:
    """Text of which everything can be seen, line breaks and tabs as escapes."""
    return unhidden(text).replace("\n", "\\n").replace("\t", "\\t")


def _with_a_look(character: str) -> str:
    if character in "\n\t":
        return character
    return character if character.isprintable() > bool(_BLANK.match(character)) else ascii(character)[1:-1]


def cut(text: str, longest: int) -> str:
    """The text; if it is long, without its middle."""
    if len(text) <= longest:
        return text
    half = longest // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


# ------------------------------------------------------------------ replies


def _call(call: Any) -> str:
    return f"{call.name} {_json(call.arguments)}" if call.whole else f"{call.name} {call.json} (cut off)"


def _json(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, default=str)


def _rows(reply: Any, results: Sequence[Any]) -> Iterator[Row]:
    """The rows of one turn, in reading order."""
    if reply.thought:
        yield "thought", reply.thought
    if reply.text:
        yield "text", reply.text
    for call in reply.calls:
        yield "call", _call(call)
        for result in results:
            if result.id == call.id:
                yield ("result", result.text) if result.error is None else ("error", str(result.error))
    for note in reply.notes:
        yield "note", f"{note.rule}: {note.detail}" if note.detail else note.rule


def _turns(reply: Any) -> list[list[Row]]:
    """The rows of each turn of a run, or of each try of a decision, and last what only the reply itself has."""
    turns = [list(_rows(step.reply, step.results)) for step in reply.steps] or [list(_rows(reply, ()))]
    last = [("pending", f"{one.tool} {_json(one.arguments)} ({one.why})") for one in reply.pending]
    last += [("output", repr(reply.output))] if reply.output is not None else []
    return [*turns, last] if last else turns


def _head(reply: Any) -> str:
    steps = f", {len(reply.steps)} steps" if len(reply.steps) > 1 else ""
    sent, received = reply.usage.prompt_tokens, reply.usage.completion_tokens
    tokens = f", {sent:,} + {received:,} tokens" if sent or received else ""
    cut_off = " (cut off)" if reply.finish in ("length", "content_filter") else ""
    return f"{reply.finish}{cut_off}{steps}{tokens}"


def reply_text(reply: Any) -> str:
    """A reply on a few lines: the finish reason, then each turn with its calls, results and notes."""
    turns = _turns(reply)
    lines = [f"Reply: {_head(reply)}"]
    for number, rows in enumerate(turns, 1):
        for place, (kind, text) in enumerate(rows):
            begins = f"{number:>3} " if len(turns) > 1 and not place else "    "
            mark = f"{MARKS.get(kind, '')} " if kind in MARKS else "output: " if kind == "output" else ""
            lines.append(begins + (mark + cut(visible(text), LONGEST)).replace("\n", "\n    "))
    return "\n".join(lines)


def reply_html(reply: Any) -> str:
    """The same as an HTML table."""
    rows = (
        (str(number) if not place else "", MARKS.get(kind, kind if kind == "output" else ""), text)
        for number, rows in enumerate(_turns(reply), 1)
        for place, (kind, text) in enumerate(rows)
    )
    return f"<p><b>Reply</b>: {escape(_head(reply))}</p>{_table(rows)}"


# ------------------------------------------------------------------ tools


def _parameters(tool: Any) -> str:
    """A tool's parameters with their types, as text. Optional ones end in `?`."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    return ", ".join(f"{name}{'' if name in required else '?'}: {_type(schema)}" for name, schema in properties.items())


def _type(schema: Any) -> str:
    return str(cast("dict[str, Any]", schema).get("type", "any")) if isinstance(schema, dict) else "any"


def _tool(tool: Any) -> str:
    return f"{tool.name}({_parameters(tool)})"


def _summary(tool: Any) -> str:
    return cut(visible(tool.description.partition("\n")[0]), 100)


def tools_html(tools: Iterable[Any]) -> str:
    """The tools as an HTML table, each with its parameters and description."""
    return _table((_tool(tool), tool.description) for tool in tools)


def hits_text(hits: Iterable[tuple[Any, float]]) -> str:
    """Search hits as text, each tool with its score."""
    return "\n".join(f"{score:.3f}  {tool.name}: {_summary(tool)}" for tool, score in hits) or "nothing found"


def hits_html(hits: Iterable[tuple[Any, float]]) -> str:
    """The same as an HTML table."""
    return _table((f"{score:.3f}", tool.name, tool.description) for tool, score in hits)


# ------------------------------------------------------------------ HTML


def text_html(text: str) -> str:
    """A text as HTML, escaped and with its line breaks."""
    return f'<pre style="white-space: pre-wrap">{escape(cut(text, LONGEST_HTML))}</pre>'


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Rows of texts as an HTML table; every text is escaped."""
    style = "text-align: left; vertical-align: top; white-space: pre-wrap"
    cells = ("".join(f'<td style="{style}">{escape(cut(text, LONGEST_HTML))}</td>' for text in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
