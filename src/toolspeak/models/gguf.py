"""What a GGUF file tells of itself in its first bytes: no library is loaded, no weights are read.

The format is https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import WeightsError

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
WANTED = ("tokenizer.chat_template", "tokenizer.ggml.", "general.", "split.")
LONGEST = 1 << 24
"""Bytes of the longest string that is believed: a length beyond it is a broken file's."""


def template(path: Path) -> tuple[str, dict[str, str]]:
    """The chat template of a model file, "" where it has none, and the variables that templates ask for.

    `bos_token` is empty where the model's tokenizer adds that token by itself. Raises WeightsError.
    """
    told = metadata(path)
    tokens: list[str] = told.get("tokenizer.ggml.tokens", [])

    def token(name: str) -> str:
        i = told.get(f"tokenizer.ggml.{name}_token_id")
        return tokens[i] if isinstance(i, int) and i < len(tokens) else ""

    adds = told.get("tokenizer.ggml.add_bos_token", told.get("tokenizer.ggml.model") == "llama")
    text = str(told.get("tokenizer.chat_template", ""))
    return text, {"bos_token": "" if adds else token("bos"), "eos_token": token("eos")}


def metadata(path: Path) -> dict[str, Any]:
    """What the file says of its tokenizer and its chat template. Raises WeightsError for what is no GGUF file."""
    if not path.is_file():
        raise WeightsError(f"there is no model file {path}. Expected: the path of a GGUF file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise WeightsError(f"{path} is no GGUF file: it does not begin with the letters GGUF")
        try:
            version, _tensors, count = _unpack(file, "<IQQ")
            if version not in (2, 3):
                raise WeightsError(f"{path} is GGUF of version {version}; expected 2 or 3. Convert it anew")
            return dict(pair for pair in (_pair(file) for _ in range(count)) if pair[0].startswith(WANTED))
        except (struct.error, KeyError, UnicodeDecodeError) as error:
            raise WeightsError(f"{path} is no whole GGUF file: its head is cut or broken. Fetch it again") from error


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
