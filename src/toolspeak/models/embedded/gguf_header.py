"""Reads a GGUF file's header without loading a library or the weights.

The format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import struct
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

from ...errors import WeightsError
from ...schema.suggestions import listed
from ..strategy import Known, by_its_name

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
WANTED = ("tokenizer.chat_template", "tokenizer.ggml.", "general.", "split.")
PARAMETERS = "toolspeak.parameters"
"""The key under which `metadata` counts what the file holds."""
LONGEST = 1 << 24
"""Bytes of the longest string that is believed: a length beyond it is a broken file's."""


def known(path: Path) -> Known:
    """What a model file tells of itself: its name, chat template and parameters. Raises WeightsError.

    `bos_token` is empty where the model's tokenizer adds that token by itself. Of a file that is a part of several the
    parameters are not known.
    """
    fields = metadata(path)
    tokens: list[str] = fields.get("tokenizer.ggml.tokens", [])

    def token(name: str) -> str:
        i = fields.get(f"tokenizer.ggml.{name}_token_id")
        return tokens[i] if isinstance(i, int) and i < len(tokens) else ""

    adds = fields.get("tokenizer.ggml.add_bos_token", fields.get("tokenizer.ggml.model") == "llama")
    names = [name for name in (path.stem, fields.get("general.name"), fields.get("general.basename")) if name]
    return Known(
        name=next((name for name in names if by_its_name(name)), names[-1]),
        template=str(fields.get("tokenizer.chat_template", "")),
        parameters=0 if fields.get("split.count", 0) > 1 else fields[PARAMETERS],
        completes=True,
        scores=True,
        variables={"bos_token": "" if adds else token("bos"), "eos_token": token("eos")},
    )


def metadata(path: Path) -> dict[str, Any]:
    """What the file says of its name, tokenizer and chat template, and its PARAMETERS.

    Raises WeightsError for what is no GGUF file."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise WeightsError(f"{_unreadable(path, error)}. Expected: the path of a GGUF file") from None
    with file:
        if file.read(4) != b"GGUF":
            raise WeightsError(f"{path} is no GGUF file: it does not begin with the letters GGUF")
        try:
            version, tensors, count = _unpack(file, "<IQQ")
            if version not in (2, 3):
                raise WeightsError(f"{path} is GGUF of version {version}; expected 2 or 3. Convert it anew")
            fields = dict(pair for pair in (_pair(file) for _ in range(count)) if pair[0].startswith(WANTED))
            return fields | {PARAMETERS: sum(_size(file) for _ in range(tensors))}
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise WeightsError(f"{path} is no whole GGUF file: its head is cut or broken. Fetch it again") from error


def _unreadable(path: Path, error: OSError) -> str:
    if path.is_dir():
        inside = sorted(path.glob("*.gguf"))
        return f"{path} is a folder" + (f", and holds {listed([one.name for one in inside], 5)}" if inside else "")
    return (
        f"the model file {path} cannot be read: {error.strerror}" if path.exists() else f"there is no model file {path}"
    )


def _size(file: BinaryIO) -> int:
    """How many numbers the next tensor holds."""
    _string(file)
    (dimensions,) = _unpack(file, "<I")
    *shape, _kind, _offset = _unpack(file, f"<{dimensions}QIQ")
    return prod(shape)


def _pair(file: BinaryIO) -> tuple[str, Any]:
    key = _string(file)
    (kind,) = _unpack(file, "<I")
    return key, _value(file, kind)


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _string(file)
    if kind != ARRAY:
        return _unpack(file, "<" + NUMBERS[kind])[0]
    inner, count = _unpack(file, "<IQ")
    if inner in NUMBERS:
        size = struct.calcsize("<" + NUMBERS[inner]) * count
        file.seek(size, 1)  # scores and types of tokens: nobody asks
        return []
    return [_value(file, inner) for _ in range(count)]


def _string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    if length > LONGEST:
        raise struct.error("a string beyond belief")
    data = file.read(length)
    if len(data) < length:
        raise struct.error("the file ends in a string")
    return data.decode("utf-8", "replace")


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))
