"""`toolspeak policy`: check calls against a policy, without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ...schema.phrases import number_of
from ..options import Command, CommandGroup, tools_option

if TYPE_CHECKING:
    from ...types import Message

UNTRUSTED: Message = {"role": "tool", "tool_call_id": "", "content": "", "origin": "untrusted"}


@click.group(cls=CommandGroup)
def policy() -> None:
    """Work with policies: files that say which calls run, need approval or are refused.

    \b
    toolspeak policy check policy.toml 'remove(path="build/x")'
    """


@policy.command(cls=Command)
@click.argument("file", metavar="FILE")
@click.argument("calls", metavar="[CALL]...", nargs=-1)
@tools_option
@click.option("--untrusted", is_flag=True, help="Assume that the conversation contains an untrusted result.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per call.")
def check(file: str, calls: tuple[str, ...], files: tuple[str, ...], untrusted: bool, as_json: bool) -> None:
    """Say what a policy decides, and by which rule.

    \b
    toolspeak policy check policy.toml
    toolspeak policy check policy.toml 'remove(path="x")' 'read_file(path="y")'
    toolspeak policy check policy.toml --tools files.py 'remove(path="x")'

    A call is written like a rule without patterns, or as JSON. With --tools, the tools' own annotations count too, and
    rules that match none of the tools are listed on standard error.
    """
    from ...tool_results import jsonable
    from ..policy_file import read_policy
    from ..terminal import answers
    from ..tool_sources import toolbox

    with answers() as out:
        rules = read_policy(file)
        tools = tuple(toolbox(files)) if files else ()
        for line in rules.unmatched(tools) if files else ():
            click.echo(f"{file}: {line}", err=True)
        for text in calls:
            decision = rules.decide(_call(text), [UNTRUSTED] if untrusted else [], tools=tools)
            if as_json:
                out.json({"call": text, **jsonable(decision)})
            else:
                out.line(f"{decision.verdict:<5}  {text}  ({decision.why})")
        if not calls:
            count = len(rules.allow) + len(rules.ask) + len(rules.deny)
            out.line(f"{file}: {number_of(count, 'rule')}; after an untrusted result: {rules.after_untrusted}")


def _call(text: str) -> Any:
    """Parse a call from JSON, or from the notation of rules. Raises UsageError and InvalidCall."""
    import json

    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{text[:100]!r} is not JSON: {error}") from None
