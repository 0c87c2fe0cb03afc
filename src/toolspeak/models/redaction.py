"""Removes secrets from what is written to disk: known keys, and any text that looks like one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from ..secret_removal import redact

HIDDEN = "[hidden]"
FIELDS = frozenset(
    ["authorization", "api_key", "apikey", "x_api_key", "proxy_authorization", "access_token", "client_secret"]
)
"""Fields and headers whose value is always a secret; `-` counts as `_`."""
USER_INFO = re.compile(r"(?<=://)[^\s/?#@\"'<>]+(?=@)")
HEADER = re.compile(
    r"""(?ix) \b (authorization | (?:x-)?api[-_]?key | access[-_]token | client[-_]secret)
    (\\?["']? \s* [:=] \s* \\?["']? (?:(?:bearer|basic|token) \s+)?) [^\s"'\\,;&]{8,}"""
)
"""A header or a field in a text, such as `Authorization: Bearer …` or `"api_key": "…"`."""
TOKEN = re.compile(
    r"""(?x) \b (?: (?:sk|pk|rk)[-_][\w-]{16,} | gh[opsur]_\w{20,} | xox[abprs]-[\w-]{10,} | AKIA[0-9A-Z]{16} | AIza[\w-]{30,}
    | (?<=[Bb]earer\ )(?=\S*\d)[\w.~+/-]{16,}=* )"""
)
"""The formats of providers' keys."""


class Redaction:
    """Replaces `secrets`, and text that looks like one, by `[hidden]`. Equal texts stay equal."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [secret for secret in secrets if secret]

    def text(self, text: str) -> str:
        """Return the text without secrets."""
        text = redact(text, self._secrets) if self._secrets else text
        text = USER_INFO.sub(HIDDEN, text) if "@" in text else text
        return TOKEN.sub(HIDDEN, HEADER.sub(rf"\1\2{HIDDEN}", text))

    def data(self, value: Any, field: str = "") -> Any:
        """Return JSON data without secrets in its strings; its keys are unchanged."""
        if isinstance(value, str):
            return HIDDEN if value and field.lower().replace("-", "_") in FIELDS else self.text(value)
        if isinstance(value, Mapping):
            rows = cast("Mapping[str, Any]", value)
            return {name: self.data(one, name) for name, one in rows.items()}
        if isinstance(value, list | tuple):
            return [self.data(one) for one in cast("list[Any]", value)]
        return value
