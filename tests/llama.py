"""A real llama.cpp server with the embedded model's weights, apart from the one that `local` is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolspeak.models.embedded import weights


def served(key: str, context: int = 4096, template: str = "", *, jinja: bool = True, path: Path | None = None) -> Any:
    """A server on loopback that takes this key, one request at a time, with another chat `template` where one is given, of
    another file by its `path`; without `jinja` it refuses tools. It lives as long as it is held."""
    library = pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    if not weights.present():
        pytest.skip("the embedded model's weights are not here")
    params = library.CommonParams()
    params.model.path = str(path or weights.path_of())
    params.n_ctx, params.n_parallel, params.warmup, params.verbosity, params.ui = context, 1, False, -1, False
    params.api_keys = [key]
    params.use_jinja = jinja
    if template:
        params.chat_template = template
    return library.Server(params)
