"""Reading files, and replacing them atomically."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from toolspeak.errors import UsageError
from toolspeak.files import read_json, replacing


def test_a_file_takes_its_place_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("old", "utf-8")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text("utf-8") == "old"
    assert path.read_text("utf-8") == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_block_that_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("old", "utf-8")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.writelines([b"half", bytes(1 // 0)])
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_where_no_file_can_be_an_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="none"), replacing(tmp_path / "none" / "kept.json"):
        pass


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_says_who_may_read_a_file(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "shared.json") as file:
            file.write(b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "shared.json").stat().st_mode) == mode


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "f.json cannot be read: No such file"),
        (b"\xff{}", "f.json is not UTF-8: .* at byte 0"),
        (b"{", "f.json, line 1, column 2: not JSON: Expecting"),
        (b"[" * 100_000, "f.json cannot be read: maximum recursion depth"),
        (b"1" * 5_000, "f.json cannot be read: Exceeds the limit"),
    ],
)
def test_what_is_wrong_with_a_file(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=words):
        read_json(path)


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(path) == [1]
