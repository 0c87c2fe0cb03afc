"""The configuration file: what it means, and how everything that is wrong with it is told."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import strategies as st

import toolspeak as ts
from properties import property_test
from toolspeak.errors import UsageError
from toolspeak.gateway.access.keys import digest, hashed
from toolspeak.gateway.config.load import parse_config, read_config, summary
from toolspeak.gateway.config.settings import GatewayLimits, Rates

KEY = hashed("a-long-key")
SAMPLE = files("toolspeak.gateway").joinpath("sample.toml").read_text("utf-8")
MODEL = '[models.m]\nupstream = "scripted:Hi"\n'


def wrong(text: str, folder: Path = Path()) -> list[str]:
    with pytest.raises(UsageError) as caught:
        parse_config(text, "gateway.toml", folder)
    return str(caught.value).splitlines()


def test_all_of_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIG_KEY", "upstream-secret\n")
    (tmp_path / "big.jinja").write_text("{{ messages }}", "utf-8")
    file = tmp_path / "gateway.toml"
    file.write_text(
        f"""
        [server]
        host = "::1"
        port = 9000
        workers = 2
        cors = ["https://example.org", "http://localhost:3000"]

        [models.small]
        upstream = "ollama:NAME"

        [models.big]
        upstreams = ["http://a:8000/v1#N", "http://b:8000/v1#N"]
        key = {{ env = "BIG_KEY" }}
        mode = "raw"
        dialect = "seed_oss"
        template = "big.jinja"
        arguments = "live"
        tries = 1

        [keys.alice]
        hash = "{KEY}"
        models = ["small"]
        rates = {{ requests = 60, tokens = 100_000, running = 4 }}

        [keys.bob]
        hash = "{hashed("another")}"

        [limits]
        body = 1_000
        deadline = 60

        [store]
        path = "gateway.sqlite"
        """,
        "utf-8",
    )
    settings = read_config(str(file))
    assert (settings.host, settings.port, settings.workers) == ("::1", 9000, 2)
    assert settings.cors == ("https://example.org", "http://localhost:3000")
    big = settings.models["big"]
    assert (big.upstreams, big.key, big.mode) == (
        ("http://a:8000/v1#N", "http://b:8000/v1#N"),
        "upstream-secret",
        "raw",
    )
    assert big.dialect == ts.dialect("seed-oss")
    assert (big.dialect.name, big.template, big.arguments, big.tries) == ("seed-oss", "{{ messages }}", "live", 1)
    alice, bob = settings.keys
    assert (alice.digest, alice.models, alice.rates) == (digest("a-long-key"), ("small",), Rates(60, 100_000, 4))
    assert (bob.models, bool(bob.rates)) == (None, False)
    assert settings.limits == GatewayLimits(body=1_000, deadline=60.0)
    assert settings.store is not None
    assert settings.store.path == str(tmp_path / "gateway.sqlite")
    assert not settings.store.responses
    told = "\n".join(summary(settings))
    assert "alice: small; 60 requests a minute; 100,000 tokens a minute; 4 requests at once" in told
    assert "upstream-secret" not in told + repr(settings)
    assert KEY.removeprefix("sha256:") not in repr(settings)


def test_every_mistake_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    told = wrong(
        """
[server]
prot = 8080
cors = ["https://example.org/"]

[models.small]
upstrem = "local"
mode = "nativ"

[models.big]
upstreams = ["olama:x"]
key = "sk-secret"
dialect = "sed-oss"
template = "nope.jinja"

[keys.alice]
hash = "sk-secret"
models = ["smal"]
rates = { requests = 0 }

[limits]
body = "10MB"
depht = 4
[store]
path = 5
[[widgets]]
""",
        tmp_path,
    )
    expected = [
        "gateway.toml:3: server.prot: unknown field. Did you mean 'port'?",
        'gateway.toml:4: server.cors: expected an origin such as "https://example.org"',
        "gateway.toml:6: models.small: expected an upstream",
        "gateway.toml:7: models.small.upstrem: unknown field. Did you mean 'upstream'",
        "gateway.toml:8: models.small.mode: expected one of auto, native, chat, raw, got \"nativ\". Did you mean 'native'?",
        "gateway.toml:11: models.big.upstreams: expected the name of a model: no model is called 'olama:x'; did you mean ollama:x",
        'gateway.toml:12: models.big.key: expected { env = "VARIABLE" } or { file = "PATH" }',
        "gateway.toml:13: models.big.dialect: expected the name of a dialect: no dialect is called 'sed-oss'; near ones: seed-oss",
        "gateway.toml:14: models.big.template: nope.jinja: No such file",
        'gateway.toml:16: keys.alice: expected hash = "sha256:…"',
        "gateway.toml:18: keys.alice.models: expected one of small, big, got \"smal\". Did you mean 'small'?",
        "gateway.toml:19: keys.alice.rates.requests: expected a whole number of at least 1, got 0",
        'gateway.toml:22: limits.body: expected a whole number of at least 1, got "10MB"',
        "gateway.toml:23: limits.depht: unknown field. Did you mean 'depth'?",
        "gateway.toml:25: store.path: expected a string that is not empty, got 5",
        "gateway.toml:26: widgets: unknown field. There are aliases, hosted, keys, limits, mcp, models, server, store.",
    ]
    for line in expected:
        assert any(one.startswith(line) for one in told), f"{line}\nis not in\n" + "\n".join(told)
    assert "sk-secret" not in "\n".join(told)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models", "it is not TOML"),
        (MODEL + "upstreams = ['local']", "got both"),
        ("[models.m]\nupstream = 'scripted:Hi'\nkey = { env = 'NOT_SET_ANYWHERE' }", "NOT_SET_ANYWHERE is not set"),
        (
            "[models.m]\nupstream = 'scripted:Hi'\nkey = { env = 'A', file = 'b' }",
            "this file must not contain the secret",
        ),
        (f"[keys.a]\nhash = '{KEY}'\n[keys.b]\nhash = '{KEY}'", "this is also the key of a"),
        ("models = 5", "expected a table, got 5"),
        ("[models]\nm = 'local'", "expected a table"),
        ("[server]\nport = true", "expected a whole number"),
        ("[limits]\ndeadline = nan", "expected a number"),
        ("[store]\npath = 'not/there/x.sqlite'", "store.path: not/there: there is no such folder"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert said in "\n".join(wrong(text))


COSTLY = f"""{MODEL}[store]
path = 'x.sqlite'
[keys.bob]
hash = '{KEY}'
budget = {{ money = 5.0 }}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COSTLY, "keys.bob.budget.money: there is no price of m"),
        (COSTLY + "models = ['n']", "keys.bob.models: expected m, got"),
        (COSTLY + "models = 'm'", "keys.bob.models: expected a list"),
        (COSTLY.replace("[store]", "price = { input = 1 }\n[store]"), "models.m.price.output: expected the price"),
        (COSTLY.replace("[store]", "price = 1\n[store]"), "models.m.price: expected a table, got 1"),
        ("store = 5", "store: expected a table, got 5"),
        ("[models]\nm = 'local'", "models.m: expected a table, got"),
    ],
)
def test_a_value_that_is_wrong_has_one_error(text: str, said: str) -> None:
    (only,) = wrong(text)
    assert said in only


def test_a_missing_program_with_a_path_is_not_searched_on_the_path(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none", "no program"), (tmp_path, "no program that may be executed")):
        (error,) = wrong(f"[mcp.m]\ncommand = {json.dumps(str(path))}")
        assert f"mcp.m: there is {said} " in error
        assert "PATH" not in error
    assert "on the PATH" in wrong("[mcp.m]\ncommand = 'no-such-program'")[0]


def test_the_summary_has_the_audit(tmp_path: Path) -> None:
    settings = parse_config("[audit]\npath = 'a.sqlite'\narguments = true\nage = 7_776_000", folder=tmp_path)
    assert f"audit   {tmp_path}/a.sqlite: decisions about calls, with arguments, kept for 7,776,000 s" in summary(
        settings
    )


def test_the_summary_has_long_times_in_whole_seconds(tmp_path: Path) -> None:
    settings = parse_config("[store]\npath = 's.sqlite'\nresponses = true\nage = 2_592_000", folder=tmp_path)
    assert any(line.endswith(" bytes and 2,592,000 s") for line in summary(settings))


def test_an_empty_key_of_a_model_is_none_and_any_other_empty_file_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY_KEY", "")
    (tmp_path / "empty").write_text("\n")
    for key in ("file = 'empty'", "env = 'EMPTY_KEY'"):
        settings = parse_config(f"{MODEL}key = {{ {key} }}", folder=tmp_path)
        assert settings.models["m"].key is None
    assert "Write the value into it" in "\n".join(wrong(MODEL + "template = 'empty'", tmp_path))
    header = "[mcp.m]\nurl = 'http://127.0.0.1:9/mcp'\nheaders = { Authorization = { file = 'empty' } }"
    assert "empty: it is empty. Write the value" in "\n".join(wrong(MODEL + header, tmp_path))


def test_a_template_that_cannot_be_rendered_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.jinja").write_text("{% for m in messages %}{{ m.content }}", "utf-8")
    text = "[models.m]\nupstream = 'scripted:Hi'\ntemplate = 'bad.jinja'"
    assert "gateway.toml:3: models.m.template: the chat template cannot be rendered" in "\n".join(wrong(text, tmp_path))


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_config(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(UsageError, match="not UTF-8"):
        read_config(str(tmp_path / "latin.toml"))


def test_the_sample_is_good_and_shows_every_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = parse_config(SAMPLE)
    assert list(usual.models) == ["small"]
    assert usual.limits == GatewayLimits()
    # what stands behind # is a configuration too, and its values are the defaults
    for name in ("BIG_KEY", "FILES_TOKEN", "TICKETS_AUTHORIZATION"):
        monkeypatch.setenv(name, "k")
    (tmp_path / "big.jinja").write_text("{{ messages }}", "utf-8")
    shown = re.sub(r"(?m)^# (?=\[|\w+ = )", "", SAMPLE).replace("sha256:...", KEY)
    shown = re.sub(r"(?m)^upstreams = .*$", "", shown)
    settings = parse_config(shown, folder=tmp_path)
    assert settings.limits == GatewayLimits()
    assert set(tomllib.loads(shown)["limits"]) == set(GatewayLimits.__dataclass_fields__)
    small, big = settings.models.values()
    assert (big.mode, big.arguments, big.tries) == (small.mode, small.arguments, small.tries)
    assert (settings.workers, settings.cors) == (1, ())


@property_test(100, st.text(), st.recursive(st.integers() | st.text() | st.booleans() | st.floats(), st.lists))
def test_whatever_stands_there_is_read_or_told(name: str, value: object) -> None:
    text = f"[models.m]\nupstream = 'scripted:Hi'\n[limits]\n{json.dumps(name)} = {json.dumps(value)}"
    with suppress(UsageError):  # and nothing else
        parse_config(text)
