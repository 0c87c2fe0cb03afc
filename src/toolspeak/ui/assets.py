"""The files of the page, and their HTTP headers.

The page loads nothing from other hosts, runs only its own modules, and never creates HTML from text. The Content
Security Policy makes the browser enforce that, whatever a model writes.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

TYPES = {
    "html": b"text/html; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
INDEX = "index.html"
Headers = list[tuple[bytes, bytes]]
GUARDS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-cache"),
]
PAGE: Headers = [
    *GUARDS,
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types 'none'",
    ),
]
REPORT: Headers = [
    *GUARDS,
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        b"frame-ancestors 'self'; sandbox allow-popups",
    ),
]
"""The policy for a report, which has its own styles and runs no script."""


@cache
def asset(name: str) -> tuple[bytes, bytes] | None:
    """Return the content and the media type of a file of the page, None for an unknown name."""
    return _all().get(name)


@cache
def _all() -> dict[str, tuple[bytes, bytes]]:
    home = files(__package__ or "").joinpath("static")
    return {
        file.name: (file.read_bytes(), kind)
        for file in home.iterdir()
        if (kind := TYPES.get(file.name.rpartition(".")[2]))
    }
