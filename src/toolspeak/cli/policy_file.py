"""Reads policies from TOML files for the options of commands."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..files import read_text

if TYPE_CHECKING:
    from ..policy.policy import Policy


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


def read_policy_option(path: str | None) -> dict[str, Policy]:
    """Return the option `policy` of a verb, if a file was named."""
    return {"policy": read_policy(path)} if path else {}
