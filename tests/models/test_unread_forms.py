"""Calls in forms of real models that no dialect has: they stay text, and a note says so. Ordinary answers get none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak.models.unread_calls import like_a_call
from toolspeak.types import Tool
from toolspeak.wire.prompt.calls import write_calls

PAGES = sorted(Path(__file__).resolve().parents[2].glob("docs/*/*.md"))
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def tool(name: str, *parameters: str) -> Tool:
    return Tool(name, "", {"type": "object", "properties": {key: {"type": "string"} for key in parameters}})


TOOLS = (tool("bash", "command"), tool("read_file", "path"))
COMMON = (
    tool("search", "query"),
    tool("run", "name", "path"),
    tool("find", "text"),
    tool("model", "name"),
    tool("call", "name"),
)
FORMS = (
    "<bash>ls</bash>",
    "<read_file>\n<path>a</path>\n</read_file>",
    "I read it.\n<read_file>\n<path>a</path>\n</read_file>\nI wait.",
    'So:\n<read_file>{"path": "a"}</read_file>',
    '<x:invoke name="bash"><x:parameter name="command">ls</x:parameter></x:invoke>',
    '<｜｜XML｜｜ invoke name="bash">\n<｜｜XML｜｜ parameter name="command">ls</｜｜XML｜｜ parameter>',
    '<|tool_sep|>bash\n```json\n{"command": "ls"}\n```<|tool_end|>',
    'bash[ARGS]{"command": "ls"}',
    "bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    'functions.bash:0{"command": "ls"}',
    'functions.bash:0<|argument|>{"command": "ls"}',
    'Action: [bash]\nAction Input: {"command": "ls"}',
)
ANSWERS = (
    "<b>bash</b> is a shell.",
    "The <bash> tag is none.",
    "Use read_file, or bash with a command: ls.",
    "Action: the bash script runs.",
    "<path>a</path> is read by read_file.",
    'bash {"command"} is no syntax.',
    "```bash\nls\n```",
    "functions.bash is a name, and bash:0 too.",
    "if a < b and the tool is bash, then no.",
)


@pytest.mark.parametrize("text", FORMS)
def test_a_call_in_such_a_form_leaves_a_note(text: str) -> None:
    note = like_a_call(text, TOOLS)
    assert note is not None
    assert note.rule == "like-a-call"
    assert "a call of read_file" in note.detail or "a call of bash" in note.detail


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_leaves_none(text: str) -> None:
    assert like_a_call(text, TOOLS) is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_in_words_leave_none(page: Path) -> None:
    """Without their code, which may show calls."""
    for part in re.split(r"\n(?=#)", CODE.sub("", page.read_text("utf-8"))):
        assert like_a_call(part, COMMON) is None, part[:80]


PLACES = {
    "So:\n```\n{}\n```\nSee?": "shows calls",
    "The form is `{}` here.": "shows calls",
    "> {}\n\nThat is it.": "shows calls",
    "# {}\nrun()": "shows calls",
    "<!-- {} -->": "shows calls",
    "- {}\n- or nothing": "shows calls",
    "<pre>{}</pre>": "shows calls",
    "I would send {} for this.": "goes on directly behind it ('for this.')",
    "So:\n{}\nThat is how it looks.": "Words stand beside it",
}


def test_the_note_on_a_whole_call_says_why_it_stays_text() -> None:
    call = ts.ToolCall("c", "read_file", {"path": "a"})
    for dialect in ("hermes", "mistral-v13", "deepseek-v31", "minicpm5"):
        written = write_calls([call], ts.dialect(dialect)).strip()
        for place, why in PLACES.items():
            note = like_a_call(place.format(written), TOOLS)
            assert note is not None
            assert why in note.detail, (dialect, place, note.detail)
