"""Renders a chat template within limits, with the same result as Jinja2 in its usual setup for chat templates.

Templates come from strangers. minijinja renders them with a limit of steps and of output, and in the sandbox. It
differs from Jinja2 in details (how values print, `safe`, missing methods), which the functions below make up for.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from ...errors import TemplateError
from .jinja_limits import FAILURES, MOST, too_deep

SIZE = 1_000_000
"""The most characters of a template."""
FUEL, FUEL_EACH, MOST_FUEL = 2_000_000, 20_000, 50_000_000
"""The steps of a template: a base, more for each message and tool, and a maximum, which takes some seconds."""
WIDEST = 1_000
"""The most characters of an indentation of JSON."""
OUTPUT = 20_000_000
"""The most characters of a prompt."""
UNKNOWN = (
    "SyntaxError",
    "UnknownFilter",
    "UnknownFunction",
    "UnknownMethod",
    "UnknownTest",
    "TooManyArguments",
    "MissingArgument",
)
"""Errors of minijinja about features that Jinja2 may have."""
DATE_FORM = "%Y-%m-%d %H:%M:%S %Z"
GENERATION = re.compile(r"(\{%[-+]?)\s*(end)?generation\s*([-+]?%\})")
SAFE = re.compile(r"\|\s*safe\s*\+|\+\s*[\w.]{1,99}\s*\|\s*safe\b")
"""A text marked as safe in an addition: Jinja2 then escapes the other text (with `+`; not with `~`)."""
OPEN, CLOSE = "\ufdd0", "\ufdd1"
"""Characters around text that a template marks as safe; no text contains them."""


def render_template(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    generate: bool = True,
) -> str:
    """The conversation as rendered by the template. Raises TemplateError with the template's own message.

    A template that minijinja cannot render is rendered by sandboxed Jinja2, if that is installed. The template cannot
    change its inputs.
    """
    if len(template) > SIZE:
        raise TemplateError(f"expected a chat template of at most {SIZE} characters, got {len(template)}")
    if too_deep(template):
        raise TemplateError(
            f"expected a chat template with at most {MOST} tokens in a tag, and as many branches, got more"
        )
    context: dict[str, Any] = _functions(template, tools, now) | {"bos_token": "", "eos_token": "", "documents": None}
    context |= {k: _copied(v) for k, v in (variables or {}).items()}
    context |= {"messages": _copied(messages), "tools": _copied(tools) or None, "add_generation_prompt": generate}
    try:
        return _rendered(template, context, now)
    except TemplateError:
        if tools:
            raise
        try:  # some templates count the tools before they test whether there are any
            return _rendered(template, context | {"tools": []}, now)
        except TemplateError:
            pass
        raise


def free_variables(template: str) -> list[str]:
    """The variables that a template reads without setting them, sorted by name; empty if it cannot be parsed."""
    import minijinja

    if too_deep(template):
        return []
    own = {*_helpers(None), "namespace", "range", "dict", "joiner", "cycler", "lipsum"}
    try:
        names = minijinja.Environment().undeclared_variables_in_str(GENERATION.sub(_generation, template))
    except (minijinja.TemplateError, RecursionError):
        return []
    return sorted(set(names) - own)


def _copied(value: Any) -> Any:
    """A copy of the data in new lists and dicts."""
    if isinstance(value, Mapping):
        return {k: _copied(v) for k, v in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_copied(v) for v in cast("Sequence[Any]", value)]
    return value


def _rendered(template: str, context: dict[str, Any], now: datetime | None) -> str:
    import minijinja

    filters: dict[str, Callable[..., Any]] = {"tojson": tojson, "indent": indented, "format": formatted}
    finish = as_python
    if SAFE.search(template):
        filters["safe"] = _safe
        finish = _escaped
    engine = minijinja.Environment(
        filters=filters, globals=_helpers(now), finalizer=_counted(finish), fuel=_fuel(context), debug=False
    )
    engine.trim_blocks = engine.lstrip_blocks = True
    try:
        return within(engine.render_str(GENERATION.sub(_generation, template), None, **context))
    except minijinja.TemplateError as e:
        why, kind = str(e).splitlines()[0], e.kind
    except RecursionError:
        why, kind = "recursion limit exceeded", "OutOfFuel"
    except TemplateError:
        raise
    except FAILURES as e:  # of a function below, to which the template gives something else than it takes
        why, kind = f"{type(e).__name__}: {e}".replace("_helpers.<locals>.", ""), ""
    if kind in UNKNOWN or " % operator" in why:
        return _by_jinja2(template, context, now, why)
    raise TemplateError(f"the chat template cannot be rendered: {why}")


def _fuel(context: Mapping[str, Any]) -> int:
    rows = len(context["messages"]) + len(context["tools"] or ())
    return min(MOST_FUEL, FUEL + FUEL_EACH * rows)


def _by_jinja2(template: str, context: dict[str, Any], now: datetime | None, why: str) -> str:
    from .jinja_sandbox import installed, render_sandboxed

    if not installed():
        raise TemplateError(
            f"the chat template cannot be rendered: {why}; Jinja2 may support it: pip install 'toolspeak[jinja]'"
        )
    return render_sandboxed(template, context, _helpers(now), {"tojson": tojson}, _fuel(context), OUTPUT)


def _helpers(now: datetime | None) -> dict[str, Any]:
    """The functions that chat templates may call."""

    def refuse(message: object = "") -> str:
        raise TemplateError(f"the chat template refuses these messages: {message}")

    def strftime_now(form: str) -> str:
        if now is None:
            raise TemplateError("the chat template asks for the time: give now=")
        return now.strftime(form)

    return {"raise_exception": refuse, "strftime_now": strftime_now}


def within(text: str) -> str:
    """The text, if it is within the limit of a prompt."""
    if len(text) > OUTPUT:
        raise TemplateError(f"expected the chat template to write at most {OUTPUT} characters, got {len(text)}")
    return text


def as_python(value: object) -> object:
    """Numbers and containers as Python prints them: True, None, 1e+20, single quotes."""
    return str(cast("object", value)) if isinstance(value, float | dict | list | tuple) else value


def _safe(value: object) -> str:
    return f"{OPEN}{value}{CLOSE}"


def _escaped(value: object) -> object:
    """Escapes text beside one marked as safe for HTML, as Jinja2 does when it adds them."""
    if not isinstance(value, str) or OPEN not in value:
        return as_python(value)
    out: list[str] = []
    for i, piece in enumerate(value.split(OPEN)):
        inner, _, outer = piece.rpartition(CLOSE) if i else ("", "", piece)
        out += [inner, html.escape(outer).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")]
    return "".join(out)


def _counted(finish: Callable[[object], object]) -> Callable[[object], Any]:
    """`finish`, with an error when the output exceeds its limit."""
    left = OUTPUT

    def finalize(value: object) -> Any:
        nonlocal left
        done = finish(value)
        if isinstance(done, str):
            left -= len(done)
            if left < 0:
                raise TemplateError(f"expected the chat template to write at most {OUTPUT} characters, it goes on")
        return NotImplemented if done is value else done

    return finalize


def indented(text: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """The text with its lines indented as in Jinja2: a final line break stays."""
    pad = width if isinstance(width, str) else " " * min(width, OUTPUT)
    top, *lines = (text + "\n").splitlines()
    if len(pad) * (1 + len(lines)) > OUTPUT:
        raise TemplateError(f"expected the chat template to write at most {OUTPUT} characters, it goes on")
    rest = "".join("\n" + (pad + line if line or blank else line) for line in lines)
    return (pad if first else "") + top + rest


def formatted(text: str, *values: Any, **named: Any) -> str:
    """The text with values inserted as by Python's `%`."""
    if any("*" in field or len(field) > 5 for field in re.findall(r"%([-+ #0-9.*]*)", text)):
        raise TemplateError("expected the chat template to write plain fields, as in %s or %05.2f")
    try:
        return text % (named or values)
    except (TypeError, ValueError, KeyError) as e:
        raise TemplateError(f"the chat template cannot be rendered: {e}") from e


def _generation(tag: re.Match[str]) -> str:
    """Replaces the tags around an assistant's text, which Jinja does not have, by a condition that is true."""
    return tag[1] + (" endif " if tag[2] else " if true ") + tag[3]


def _functions(template: str, tools: Sequence[Mapping[str, Any]] | None, now: datetime | None) -> dict[str, Any]:
    """The inputs of templates from before `tools` became common: functions and datetime, as text."""
    if re.search(r"\btools\b", template):
        return {}
    functions = [tool.get("function", tool) for tool in tools or ()]
    date = now.strftime(DATE_FORM).strip() if now else ""
    return {"functions": json.dumps(functions, indent=4, ensure_ascii=False, default=str), "datetime": date}


def tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as chat templates expect it, without HTML escapes."""
    pair = (separators[0], separators[1]) if separators else None
    if isinstance(indent, int):
        indent = min(indent, WIDEST)
    encoder = json.JSONEncoder(
        indent=indent, ensure_ascii=ensure_ascii, separators=pair, sort_keys=sort_keys, default=str
    )
    if indent is None:
        return encoder.encode(value)
    pieces: list[str] = []
    left = OUTPUT
    for piece in encoder.iterencode(value):  # deeply nested data grows with each level's indentation
        left -= len(piece)
        if left < 0:
            raise TemplateError(f"expected the chat template to write at most {OUTPUT} characters, it goes on")
        pieces.append(piece)
    return "".join(pieces)
