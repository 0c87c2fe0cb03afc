"""Models by name: `local`, `ollama:gemma3`, `openai:gpt-5`, `http://host:8000/v1#name`, `scripted:…`, `replay:…`."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from typing import Any, cast

from ..errors import UnknownModel, UsageError
from ..schema.nonblocking_json import loads_or
from ..schema.suggestions import did_you_mean, near
from .base import Model
from .http.address import USERINFO
from .http.providers import PROVIDERS
from .sampling import NONE, check_options, checked_flag, sampling
from .strategy import Preferences, by_its_name
from .tool_calling import adapted

DEFAULT = "local"
VARIABLE = "TOOLSPEAK_MODEL"
KINDS = ("local", "scripted", "replay", "http", "https")
"""What a name may begin with beside the name of a provider."""
WHOLE = {
    "local": "local",
    "scripted": "scripted:TEXT",
    "replay": "replay:FILE",
    "http": "http://host:8000/v1",
    "https": "https://host/v1",
}
"""How a name that begins so goes on."""


def model(
    name: str | Model | None = None,
    *,
    dialect: Any = None,
    key: str | None = None,
    look: bool = True,
    temperature: float | None = None,
    max_tokens: int | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    extra_body: Mapping[str, Any] | None = None,
    **options: Any,
) -> Model:
    """The model of that name; without one that of $TOOLSPEAK_MODEL, else `local`. A model is itself.

    - `local`, `local:/path/to.gguf`: llama.cpp in this process
    - `ollama:MODEL`, `openai:MODEL` and the other providers of `models.http.providers`: over HTTP, with the key
      of the provider's environment variable
    - `http://host:8000/v1#MODEL` or https: any server that speaks OpenAI's API; without `#MODEL` the one it has
    - `scripted:TEXT` or `scripted:FILE` (.jsonl or .txt, a reply a line): replies that are known already. What looks
      like the name of a file is one
    - `replay:FILE`: the answers of a recording, see `replay`

    With `dialect` tools are written into the prompt in that dialect. Without it the model is asked as `toolspeak tune`
    found best, where it did (see `models.tuned_profiles`), else by what is known of it (see `models.strategy`); a choice of
    `native` or `api` counts before a profile. Before the first request with tools a server of your own is asked one cheap
    question about them, unless `look` is False. `key` stands before the environment. `temperature`, `max_tokens`, `top_p`,
    `top_k` and `extra_body` (further fields for the server, such as `{"min_p": 0.1}`) are for requests that set none of
    their own.
    `options` go to the model's own class: for HTTP see `models.http.Http`. `context=8192` is one of HTTP and of `local`: how
    many tokens the model reads and writes at once, if its server does not report it. Raises UnknownModel for a name
    that means none, UsageError for a setting that cannot be.
    """
    checked_flag("look", look)
    chosen = name if name is not None else os.environ.get(VARIABLE) or DEFAULT
    settings = {"temperature": temperature, "max_tokens": max_tokens, "top_p": top_p, "top_k": top_k}
    defaults = sampling(settings | {"extra_body": extra_body})
    if defaults != NONE:
        options["defaults"] = defaults
    resolved = bare(chosen, key=key, **options) if isinstance(chosen, str) else _unchanged(chosen, key, options)
    return adapted(resolved, Preferences(dialect=dialect), look=look, follow=not options.keys() & {"native", "api"})


def _unchanged(model: Model, key: str | None, options: Mapping[str, Any]) -> Model:
    """A model that was given. Raises UnknownModel for what is none, UsageError for settings that it should get."""
    if not isinstance(cast("object", model), Model):
        raise UnknownModel(f"expected a model or the name of one, got {type(model).__name__}; {EXPECTED}")
    if options or key is not None:
        names = [name if name != "defaults" else "sampling" for name in options] or ["key"]
        raise UsageError(f"{', '.join(names)} cannot be set on a model that is already made")
    return model


def bare(name: str, *, key: str | None = None, **options: Any) -> Model:
    """The text model or the server of that name, as it is in itself: whatever dialect, likelihoods or profile it has
    are for who asks. Raises UnknownModel."""
    name = name.strip()
    kind, colon, rest = name.partition(":")
    if kind in ("http", "https"):
        return _server(name, key, options)
    if kind in PROVIDERS:
        if not rest and kind in ("openai", "ollama", "anthropic"):
            raise UnknownModel(f"expected the name of a model after {kind}:, such as {kind}:MODEL")
        return _provided(kind, rest, key, options)
    if key is not None:
        raise UsageError(f"a key is for a model over HTTP, and {name!r} is none")
    if kind == "local":
        return _local(rest, options)
    if kind == "scripted" and colon:
        return _scripted(rest, options)
    if kind == "replay" and rest:
        from .replay import Replay

        return _remote(Replay, rest, **options)
    raise _unknown(name)


def _server(name: str, key: str | None, options: dict[str, Any]) -> Model:
    from .http.client import Http

    url, _, wanted = name.partition("#")
    return _remote(Http, url, wanted or None, key=key, **options)


def _provided(kind: str, wanted: str, key: str | None, options: dict[str, Any]) -> Model:
    from .http.client import Http

    provider = PROVIDERS[kind]
    url = os.environ.get(provider.url_variable, "") if provider.url_variable else ""
    url = _ollama_host(url) if url and kind == "ollama" else url or provider.url
    settings: dict[str, Any] = {"name": f"{kind}:{wanted}" if wanted else kind, **options}
    return _remote(Http, url, wanted or None, key=key, provider=provider, **settings)


def _remote(kind: Callable[..., Model], *arguments: Any, **options: Any) -> Model:
    """A model of a class. Raises UsageError for options that it does not take."""
    check_options(options, [*_options(model), *_options(kind)], "this model")
    return kind(*arguments, **options)


@cache
def _options(kind: Callable[..., Model]) -> list[str]:
    return [one.name for one in signature(kind).parameters.values() if one.kind is one.KEYWORD_ONLY]


def check_run_options(options: Collection[str], known: Collection[str], who: str) -> None:
    """Raises UsageError for an option that `who` does not have, as `check_options` does. One of `model` is told where it
    belongs."""
    unknown = next((name for name in options if name not in known), None)
    if unknown is None:
        return
    if unknown in _model_options():
        raise UsageError(
            f"{unknown}: this is an option of the model, not of {who}. In Python: model=ts.model(NAME, {unknown}=…)"
        )
    meant = () if near(unknown, known) else near(unknown, _model_options())
    if meant:
        raise UsageError(
            f"{unknown}: unknown option of {who}.{did_you_mean(meant[:1])} That is an option of the model. "
            f"In Python: model=ts.model(NAME, {meant[0]}=…)"
        )
    check_options(options, known, who)


@cache
def _model_options() -> list[str]:
    """The options that `model` takes by name, with those of the model of a server."""
    from .http.client import Http

    return [*_options(model), *(name for name in _options(Http) if name not in signature(model).parameters)]


def _ollama_host(value: str) -> str:
    """An address from what `OLLAMA_HOST` may hold: a host, a port or both, with or without a scheme."""
    scheme, separator, rest = value.strip().rpartition("://")
    host, slash, path = rest.partition("/")
    if host.startswith(":"):
        host = "localhost" + host
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:  # no port: an address of version 6 holds colons of its own
        name, port = host, "443" if scheme == "https" else "80" if separator else "11434"
    name = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(name, name)  # noqa: S104 - where a server listens is not where it is
    return f"{scheme or 'http'}://{name}:{port}{slash}{path}"


def _local(path: str, options: dict[str, Any]) -> Model:
    from importlib import import_module

    # by name: the module needs the extra `local` and is loaded only by those who ask for it
    return _remote(import_module(".embedded.local", __package__).Local, path or None, **options)


def _scripted(script: str, options: dict[str, Any]) -> Model:
    from .scripted import Scripted

    file = os.path.expanduser(script)
    named = FILE_NAME.fullmatch(script)
    if not named and not all((file.endswith(SCRIPTS), os.path.isfile(file))):
        return _remote(Scripted, [script], **options)
    try:
        if file.endswith(".json"):  # its lines are no replies
            raise UsageError(f"scripted:FILE reads a .jsonl or .txt file, a reply a line; {script!r} is neither")
        replies = _replies(Path(file))
    except FileNotFoundError:
        advice = "To reply with this text, write it into such a file, a reply a line"
        raise UsageError(f"scripted:FILE: there is no file {script!r}. {advice}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"the script {script!r} cannot be read: {error}") from None
    return _remote(Scripted, replies, **options)


def _replies(path: Path) -> list[str]:
    """One reply a line; a line that is a JSON string is decoded, so that a reply may hold line breaks."""
    return [_decoded(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def _decoded(line: str) -> str:
    value = loads_or(line, line)
    return value if isinstance(value, str) else line


def over_http(name: str) -> bool:
    """Whether a name means a model behind a server."""
    kind = name.strip().partition(":")[0]
    return kind in PROVIDERS or kind in ("http", "https")


def begins_a_name(text: str) -> bool:
    """Whether a text begins as the names of models do, or as the path of a file."""
    return text.strip().startswith((*(f"{kind}:" for kind in (*KINDS, *PROVIDERS)), *PATHS))


ADDRESS = re.compile(
    r"(?:[^\s/@]+@)?((?:localhost|\[[\da-fA-F:]+\])(?::\d+)?(?:[/#].*)?|[\w.-]+:\d{2,5}(?:[/#].*)?|[\w-]+(?:\.[\w-]+)+/v\d.*)"
)
"""An address without its scheme, such as `localhost:8000/v1#NAME`."""
SCHEME = re.compile(r"(https?)[:/]*/(?=[^/])", re.IGNORECASE)
"""A mistyped beginning of an address."""
PATHS = ("/", "./", "../", "~")
"""How the path of a file begins."""

SCRIPTS = (".jsonl", ".txt")
"""How the names of files with scripts end."""
FILE_NAME = re.compile(r"(?:\.{0,2}/|~)[^\s<>{}\"]+|[^\s<>{}\"]+\.(?:jsonl?|txt)")
"""What is the name of a file and no text of a reply, also if there is no such file."""


def _is_path(name: str) -> bool:
    return any((name.lower().endswith(".gguf"), name.startswith(PATHS), os.path.isfile(name)))


def _holds_no_weights(name: str) -> bool:
    """Whether a name is that of a file which is no GGUF file, by its name and by how it begins."""
    try:
        with open(name, "rb") as file:
            return not name.lower().endswith(".gguf") and file.read(4) != b"GGUF"
    except (OSError, ValueError):
        return False


def _meant(name: str) -> list[str]:
    """The names of models that a name was probably meant to be, the likeliest first."""
    if rewritten := _rewritten(name):
        return [rewritten]
    if owners := [one.name for one in PROVIDERS.values() if name.lower().startswith(one.models)]:
        return [f"{owner}:{name}" for owner in owners]
    if by_its_name(name.partition(":")[0]):
        return _servers_of(name)
    if bare_address := ADDRESS.fullmatch(name):
        return [f"http://{bare_address[1]}"]
    return _of_near_kinds(name) or _servers_of(name)


def _of_near_kinds(name: str) -> list[str]:
    """The name with a kind of model or a provider in front that is nearly what stands there."""
    kind, colon, rest = name.partition(":")
    near = difflib.get_close_matches(kind.lower(), [*KINDS, *PROVIDERS], n=2, cutoff=0.7)
    return [f"{one}:{rest}" if colon else WHOLE.get(one, f"{one}:MODEL") for one in near]


def _rewritten(name: str) -> str:
    """A name that says what it means in another form than ours, in ours; "" where it does not."""
    kind, colon, rest = name.partition(":")
    company, slash, product = name.partition("/")
    if _is_path(name):
        return f"local:{name}"
    if kind.lower() in (*KINDS, *PROVIDERS) and colon:
        return f"{kind.lower()}:{rest}"
    if slash and company.lower() in PROVIDERS:  # as other libraries write it
        return f"{company.lower()}:{product}"
    mistyped = SCHEME.match(name)
    return f"{mistyped[1].lower()}://{name[mistyped.end() :]}" if mistyped else ""


def _servers_of(name: str) -> list[str]:
    """What a model's name without a provider may mean: a model of one's own, behind a server."""
    if not name or not re.fullmatch(r"[\w./:@+-]+", name):
        return []
    engine = "vllm" if "/" in name else "ollama"
    return [f"{engine}:{name}", f"http://localhost:8000/v1#{name}"]


def _bare(name: str) -> str:
    """The name without the user and password that a mistyped address may hold."""
    return re.sub(r"^[^\s/@]*:[^\s/@]*@", "", USERINFO.sub("//", name))[:200]


def _unknown(name: str) -> UnknownModel:
    """The error for a name that means no model: what was probably meant, else how models are named."""
    if _holds_no_weights(name):
        scripts = [f"scripted:{name}", f"replay:{name}"] if name.endswith(".jsonl") else []
        kind = f"a {suffix} file" if (suffix := Path(name).suffix) else "a file"
        advice = f"did you mean {' or '.join(scripts)}?" if scripts else EXPECTED
        return UnknownModel(f"{name[:200]} is {kind} and no model; {advice}")
    meant = [_bare(one) for one in _meant(name)]
    advice = f"did you mean {' or '.join(meant)}?" if meant else EXPECTED
    return UnknownModel(f"no model is called {_bare(name)!r}; {advice} `toolspeak models list` lists the names")


EXPECTED = "expected local, local:/path/to.gguf, PROVIDER:MODEL such as ollama:gemma3, http://host:8000/v1#MODEL, scripted:TEXT or replay:FILE."
