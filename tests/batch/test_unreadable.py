"""Rows that cannot be read: their ids, their places when the input changes, and files in another encoding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_batch import speaking

import toolspeak as ts

PREFIX = "unreadable-"


def ids(source: Path, out: Path, **options: Any) -> list[Any]:
    """Returns the ids of the output, with a * for those of rows with an error, and none of the digits of made ones."""
    model, _ = speaking(lambda _: "fine")
    ts.batch(source, out, model=model, **options)
    read = list(ts.read_batch(out))
    assert len({str(row["id"]) for row in read}) == len(read)
    names = [PREFIX if str(row["id"]).startswith(PREFIX) else str(row["id"]) for row in read]
    return [f"{name}*" if row["error"] else name for name, row in zip(names, read, strict=True)]


def csv(path: Path, *rows: str, header: str = "id,text") -> Path:
    path.write_bytes("\n".join([header, *rows, ""]).encode("utf-8", "surrogateescape"))
    return path


def test_an_id_that_can_be_read_stays(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "a,one", "b,two,too many", "c,thr\udcffee", "d", "\udcff,five")
    assert ids(source, tmp_path / "csv") == ["a", "b*", "c*", "d*", f"{PREFIX}*"]
    lines = [b'{"id": "a", "text": "\xff"}', b'{"id": "\xff", "text": "b"}', b'{"id": 7, "text": "\xff"}', b"{", b"[]"]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    assert ids(tmp_path / "in.jsonl", tmp_path / "jsonl") == ["a*", f"{PREFIX}*", "7*", f"{PREFIX}*", f"{PREFIX}*"]


def test_no_line_of_json_is_read_in_another_encoding(tmp_path: Path) -> None:
    """A line that begins like UTF-16 or UTF-32 is not UTF-8, and the lines around it are read."""
    mark, line = "\ufeff", '{"id": "x", "text": "y"}'
    other = [text.encode(form) for text in (line, mark + line) for form in ("utf-16-le", "utf-32-be")]
    long = json.dumps({"id": "a", "text": "b" * 1_000}).encode()  # a file that begins so is not UTF-16
    lines = [long, b"\xff\xfe", b"\xfe\xff\x00", *other, b'{"id": "c", "text": "d"}']
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    assert ids(tmp_path / "in.jsonl", tmp_path / "out") == ["a", *[f"{PREFIX}*"] * 6, "c"]


def test_a_field_after_a_wrong_delimiter_is_no_id(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "one, two,a", "three,b", header="text,id")
    assert ids(source, tmp_path / "out") == [f"{PREFIX}*", "b"]


@pytest.mark.parametrize("rows", [("a,half", "a,cut,off"), ("a,cut,off", "a,half"), ("a,x,y", "a,half", "a,z,z")])
def test_an_unreadable_row_with_the_id_of_another_row_refuses_no_job(tmp_path: Path, rows: tuple[str, ...]) -> None:
    source = csv(tmp_path / "in.csv", *rows, "row 1,one", "row 2,two", "row 3,three")
    for _ in range(2):
        read = ids(source, tmp_path / "out")
        assert sorted(read) == sorted([*[f"{PREFIX}*"] * (len(rows) - 1), "a", "row 1", "row 2", "row 3"])


def test_a_mended_row_beside_another_unreadable_one_of_its_id(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "a,one", "b,two,too many")
    assert ids(source, tmp_path / "out") == ["a", "b*"]
    csv(source, "b,x,y", "a,one", "b,two")
    assert sorted(ids(source, tmp_path / "out")) == ["a", "b", f"{PREFIX}*"]


def test_an_id_that_occurs_twice_in_readable_rows_is_still_refused(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "a,one", "b,two,too many", "a,three")
    with pytest.raises(ts.UsageError, match="the id 'a' is also that of row 1"):
        ids(source, tmp_path / "out")


@pytest.mark.parametrize("at", range(5))
def test_unreadable_rows_keep_their_places_when_the_input_grows(tmp_path: Path, at: int) -> None:
    rows = ["a,one", "b,two,too many", '"c,three', "d,four"]
    source = csv(tmp_path / "in.csv", *rows)
    before = ["a", "b*", f"{PREFIX}*", "d"]
    assert ids(source, tmp_path / "out", shard=2) == before
    csv(source, *rows[:at], "new,row", *rows[at:])
    assert ids(source, tmp_path / "out", shard=2) == [*before, "new"]
    csv(source, *rows[:at], "new,row", *rows[at:], "bad,row,too", "e,five")
    assert ids(source, tmp_path / "out", shard=2) == [*before, "new", "bad*", "e"]


def test_a_mended_row_takes_the_place_of_its_error(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "a,one", "b,two,too many", '"c,three', "d,four")
    ids(source, tmp_path / "out", shard=2)
    csv(source, "a,one", "b,two", "c,three", "d,four")
    assert ids(source, tmp_path / "out", shard=2) == ["a", "b", "c", "d"]
    written = [
        json.loads(line) for path in sorted((tmp_path / "out").glob("part-*")) for line in path.read_text().splitlines()
    ]
    assert [row["id"] for row in written] == ["a", "b", "c", "d"]


def test_a_line_that_was_mended_after_it_moved_leaves_no_record_behind(tmp_path: Path) -> None:
    source = csv(tmp_path / "in.csv", "a,one", '"c,three', "d,four")
    ids(source, tmp_path / "out", shard=2)
    csv(source, "new,row", "a,one", "c,three", "d,four")
    assert sorted(ids(source, tmp_path / "out", shard=2)) == ["a", "c", "d", "new"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
def test_a_file_in_utf_16_is_refused_as_a_whole(tmp_path: Path, name: str, encoding: str) -> None:
    (tmp_path / name).write_bytes('{"id": 1, "text": "Grüße"}\n'.encode(encoding))
    with pytest.raises(ts.UsageError, match="is in UTF-16: convert it to UTF-8"):
        ts.batch(tmp_path / name, tmp_path / "out", model="scripted:a")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rows", [["a", "b"], ("a",), [7], [("id", 1)]])
def test_a_list_without_a_dict_is_refused_before_a_folder_is_created(tmp_path: Path, rows: Any) -> None:
    with pytest.raises(ts.UsageError, match=r'expected dicts such as {"id": 1, "text": "…"}, received a list of '):
        ts.batch(rows, tmp_path / "out", model="scripted:a")
    assert not (tmp_path / "out").exists()
