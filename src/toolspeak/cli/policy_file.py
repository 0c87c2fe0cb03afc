"""Reads policies from TOML files for the options of commands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import UsageError
from ..files import read_text
from ..schema.suggestions import DID_YOU_MEAN

if TYPE_CHECKING:
    from ..policy.policy import Policy
    from ..types import Tool


def policy_for(path: str | None, tools: Iterable[Tool[..., Any]] = ()) -> Policy | None:
    """Return the policy in a file, or None without a file. Print a note for each rule that looks misspelled.

    Such a rule matches none of the tools, but is nearly the name of one: it forbids nothing. Raises UsageError.
    """
    if not path:
        return None
    policy, offered = read_policy(path), tuple(tools)
    for line in policy.unmatched(offered) if offered else ():
        if DID_YOU_MEAN in line:
            click.echo(f"note: {path}: {line}", err=True)
    return policy


def read_policy(path: str) -> Policy:
    """Return the policy in a file. Raises UsageError, which says what is wrong and where."""
    from ..policy.policy import policy_of

    text = read_text(Path(path).expanduser())
    try:
        return policy_of(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
