"""Credentials for the operations of an OpenAPI document. They come from the configuration, never from a model."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from ...errors import UsageError
from ...models.http.timeouts import clean_key
from ...schema.suggestions import did_you_mean, listed, near
from ...secret_removal import in_header
from .document import Document
from .fetching import Credentials

Secret = str | tuple[str, str]
Auth = Secret | Mapping[str, Secret] | None
"""One secret for whatever scheme wants it, or one for each scheme by its name. A pair is a user and a password;
`$NAME` stands for an environment variable."""

CONNECTION = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect", "keep-alive",
    "proxy-connection",
})  # fmt: skip
"""Headers of the connection, which no document may set."""
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme: how a secret is sent. `kind` is apiKey, bearer, basic or "" for an unsupported one."""

    name: str
    kind: str
    place: str = "header"
    parameter: str = "Authorization"


class Keys:
    """The secrets by scheme, and which of them each operation is sent."""

    def __init__(self, document: Document, auth: Auth, headers: Mapping[str, str] | None) -> None:
        self.document = document
        self.schemes = {one.name: one for one in _schemes(document)}
        self.headers = clean_headers(headers)
        self.user_secrets = self._secrets(auth)
        self.single = auth is not None and not isinstance(auth, Mapping)
        self.hidden = {(one.place, one.parameter.lower()) for one in self.schemes.values()}
        self.hidden |= {("header", name.lower()) for name in self.headers}
        self._everywhere = not any("security" in one for one in _with_security(document))

    @property
    def any(self) -> bool:
        """Whether there is any secret to send."""
        return bool(self.user_secrets or self.headers)

    @property
    def secrets(self) -> list[str]:
        """Return everything that must not be shown, in each form in which it is sent."""
        forms = [one for value in self.headers.values() for one in in_header(value)]
        for secret in self.user_secrets.values():
            parts = [secret] if isinstance(secret, str) else [":".join(secret), secret[1]]
            forms += [form for part in parts for form in (part, quote(part, safe=""), _coded(part))]
        return [one for one in forms if one]

    def wanted(self, operation: Mapping[str, Any]) -> list[list[str]]:
        """Return the alternatives that an operation accepts, each a list of schemes that are sent together."""
        listed: Any = operation.get("security", self.document.data.get("security"))
        if listed is None and self._everywhere:
            return [[name] for name in self.schemes]
        if not isinstance(listed, list):
            return []
        return [list(cast("Mapping[str, Any]", one)) for one in cast("list[Any]", listed) if isinstance(one, Mapping)]

    def credentials(self, operation: Mapping[str, Any]) -> Credentials:
        """Return the credentials for an operation: the first of its alternatives with all secrets available."""
        for names in self.wanted(operation):
            if names and all(name in self.user_secrets for name in names) and not (self.single and len(names) > 1):
                return self._written(names)
        return Credentials(self.headers)

    def _written(self, names: Iterable[str]) -> Credentials:
        headers, query, cookies = dict(self.headers), list[str](), list[str]()
        for name in names:
            scheme, secret = self.schemes[name], self.user_secrets[name]
            if scheme.kind == "basic":
                headers["Authorization"] = "Basic " + _coded(secret if isinstance(secret, str) else ":".join(secret))
            elif scheme.kind == "bearer":
                headers["Authorization"] = f"Bearer {secret}"
            elif scheme.place == "header":
                headers[scheme.parameter] = str(secret)
            else:
                pair = f"{quote(scheme.parameter, safe='')}={quote(str(secret), safe='')}"
                (query if scheme.place == "query" else cookies).append(pair)
        return Credentials(headers, tuple(query), tuple(cookies))

    def _check_names(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.schemes:
                hint = did_you_mean(near(name, self.schemes)) or f" It names {listed(self.schemes) or 'none'}"
                raise UsageError(f"{self.document.name} names no security scheme {name!r}.{hint}")

    def _secrets(self, auth: Auth) -> dict[str, Secret]:
        if auth is None:
            return {}
        if isinstance(auth, Mapping):
            self._check_names(auth)
            return {name: _secret(secret, self.schemes[name]) for name, secret in auth.items()}
        user = not isinstance(auth, str) or ":" in auth or _VARIABLE.fullmatch(auth) is not None
        fitting = [
            one
            for one in self.schemes.values()
            if one.kind and (user if one.kind == "basic" else isinstance(auth, str))
        ]
        if not fitting:
            raise UsageError(
                f"{self.document.name} names no security scheme that takes such a secret: say how it is sent, "
                'with headers={"Authorization": …}'
            )
        return {one.name: _secret(auth, one) for one in fitting}


def _with_security(document: Document) -> Iterable[Mapping[str, Any]]:
    yield document.data
    for item in cast("Mapping[str, Any]", document.data.get("paths") or {}).values():
        if isinstance(item, Mapping):
            for one in cast("Mapping[str, Any]", item).values():
                if isinstance(one, Mapping):
                    yield cast("Mapping[str, Any]", one)


def _schemes(document: Document) -> Iterable[Scheme]:
    components: Any = document.data.get("components")
    listed: Any = (
        cast("Mapping[str, Any]", components).get("securitySchemes") if isinstance(components, Mapping) else {}
    )
    for name, raw in cast("Mapping[str, Any]", listed if isinstance(listed, Mapping) else {}).items():
        node = document.follow(raw, f"#/components/securitySchemes/{name}")
        kind = node.get("type")
        if kind == "apiKey" and node.get("in") in ("header", "query", "cookie") and isinstance(node.get("name"), str):
            kind = "apiKey" if _may_be_sent(node["in"], node["name"]) else ""
            yield Scheme(name, kind, node["in"], node["name"])
        elif kind == "http":
            way = str(node.get("scheme")).lower()
            yield Scheme(name, way if way in ("basic", "bearer") else "")
        else:
            yield Scheme(name, "bearer" if kind in ("oauth2", "openIdConnect") else "")


def _may_be_sent(place: str, name: str) -> bool:
    """Whether a secret may be sent under this name."""
    if place != "header":
        return True
    return all((_HEADER.fullmatch(name), name.lower() not in CONNECTION))


def _secret(value: Any, scheme: Scheme) -> Secret:
    """Return a secret in the form in which it is sent. Raises UsageError, without showing it, if it cannot be one."""
    if not scheme.kind:
        raise UsageError(f"the security scheme {scheme.name!r} is of an unsupported kind; use headers=…")
    if scheme.kind == "basic":
        return _basic(value, scheme.name)
    secret = _secret_text(value, scheme.name, "a text")
    if scheme.kind == "bearer":  # pasted with its prefix, such as `Bearer`
        secret = re.sub(r"\ABearer\s+", "", secret.strip(), flags=re.IGNORECASE)
    return clean_key(secret)


def _basic(value: Any, name: str) -> Secret:
    """Return a user and a password from a pair or a string."""
    pair = cast("list[Any]", value) if isinstance(value, (tuple, list)) else []
    if len(pair) == 2:
        return _expanded(pair[0], name), _expanded(pair[1], name)
    secret = _secret_text(value, name, "a text or a pair of user and password")
    if ":" not in secret:
        raise UsageError(f"the secret for {name!r} must be user:password, or a pair of both")
    return secret


def _secret_text(value: Any, name: str, wanted: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"the secret for {name!r} must be {wanted}; got {type(cast('object', value)).__name__}")
    return _expanded(value, name)


def _expanded(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"the secret for {name!r} must be a text; got {type(value).__name__}")
    match = _VARIABLE.fullmatch(value)
    if not match:
        return value
    variable = match[1] or match[2]
    if not os.environ.get(variable):
        raise UsageError(f"the secret for {name!r} is to come from the environment, and {variable} is not set")
    return os.environ[variable].strip()


def clean_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the operator's headers. Raises UsageError for invalid ones."""
    return {_header(name): _value(name, value) for name, value in (headers or {}).items()}


def _header(name: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise UsageError(f"{name!r} is not a valid header name")
    return name


def _value(name: str, value: Any) -> str:
    text = _expanded(value, name)
    if not text.isprintable():
        raise UsageError(f"the header {name!r} contains a line break or control character")
    return text


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
