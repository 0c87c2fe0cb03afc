"""The files in deploy/: an image's steps in a folder of their own, the unit as systemd reads it, the shipped configuration."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import site
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import preloaded

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
KEY = "a-key-of-twenty-letters-and-more"


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Containerfile."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest


class Image:
    """What the steps of a Containerfile come to, below `root` instead of /: COPY and RUN are done, the rest is noted.

    Nothing can be downloaded here: what pip would fetch is found where the tests' own packages are.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root
        self.settings: dict[str, Any] = {}
        self.variables: dict[str, str] = {}
        self.env = {
            **os.environ, "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPATH": os.pathsep.join(site.getsitepackages()), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }  # fmt: skip

    def inside(self, text: str) -> str:
        """A text in which the image's folders are those below `root`, and variables are what they stand for."""
        text = re.sub(r"\$\{(\w+)\}", lambda found: self.variables[found[1]], text)
        return re.sub(r"(?<![\w/.:])/(?=(?:opt|src|etc|var)\b)", f"{self.root}/", text)

    def do(self, word: str, rest: str) -> None:
        match word:
            case "ARG":
                name, _, value = rest.partition("=")
                self.variables[name] = value
            case "WORKDIR":
                self.folder = Path(self.inside(rest))
                self.folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(rest)
            case "RUN":
                command = self.inside(rest)
                if os.geteuid():
                    command = command.replace("-o 10001 -g 10001", "")
                done = subprocess.run(
                    command, shell=True, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=600
                )
                assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
            case "FROM":
                self.settings = {}
            case _:
                self.settings[word] = rest

    def _copy(self, rest: str) -> None:
        *sources, target = shlex.split(rest)
        if sources[0].startswith("--from="):
            assert self.inside(sources[1]) == self.inside(target)  # it is there by now: all stages share one root
            return
        for source in sources:
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, self.folder / target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, self.folder / target)

    def command(self, word: str) -> list[str]:
        """The command that an instruction holds as JSON."""
        return [self.inside(part) for part in json.loads(self.settings[word])]


@pytest.mark.costly
def test_the_image_is_built_serves_and_ends(tmp_path: Path) -> None:
    image = Image(tmp_path / "image")
    image.root.mkdir()
    for word, rest in instructions((DEPLOY / "Containerfile").read_text()):
        image.do(word, rest)
    configuration = image.root / "etc/toolspeak/gateway.toml"
    configuration.parent.mkdir(parents=True)
    configuration.write_text("[models.small]\nupstream = 'scripted:Hello from the image'\n")
    assert image.settings["USER"] == "10001:10001"

    command = [*image.command("ENTRYPOINT"), *image.command("CMD"), "--port", "0"]
    home = image.root / "var/lib/toolspeak"
    env = {**image.env, "HOME": str(home), "PYTHONUNBUFFERED": "1"}
    for name in [name for name in env if name.startswith(("TOOLSPEAK", "XDG"))]:
        del env[name]
    refused = subprocess.run(command, cwd=image.folder, env=env, capture_output=True, text=True, timeout=120)
    assert refused.returncode == 2
    assert "key" in refused.stderr  # other machines need one

    env["TOOLSPEAK_GATEWAY_KEY"] = KEY
    with subprocess.Popen(command, cwd=image.folder, env=env, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        first = serving.stderr.readline()
        port = re.search(r":(\d+)$", first.strip())
        assert port is not None, first
        assert port[1] != "8080"
        check = json.loads(image.settings["HEALTHCHECK"].partition("CMD ")[2])
        check = [image.inside(part).replace("8080", port[1]) for part in check]
        assert subprocess.run(check, env=env, timeout=120).returncode == 0
        assert answer(port[1], KEY)["choices"][0]["message"]["content"] == "Hello from the image"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            answer(port[1], "another")
        serving.send_signal(getattr(signal, image.settings["STOPSIGNAL"]))
        serving.communicate(timeout=120)
        assert serving.returncode == 0
        assert subprocess.run(check, env=env, timeout=120, stderr=subprocess.DEVNULL).returncode != 0


def answer(port: str, key: str) -> Any:
    body = {"model": "small", "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_takes_the_unit_and_finds_it_confined(tmp_path: Path) -> None:
    text = (DEPLOY / "toolspeak.service").read_text()
    assert "/opt/toolspeak/bin/toolspeak serve --config /etc/toolspeak/gateway.toml" in text
    unit = tmp_path / "toolspeak.service"
    unit.write_text(text.replace("/opt/toolspeak/bin/toolspeak", str(Path(sys.executable).parent / "toolspeak")))
    for command in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=20", "--no-pager"]):
        done = subprocess.run(["systemd-analyze", *command, str(unit)], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        assert str(unit) not in done.stderr, done.stderr


def test_the_shipped_configuration_is_good(tmp_path: Path) -> None:
    (tmp_path / "model.key").write_text("a-key")
    shipped = (DEPLOY / "gateway.toml").read_text()
    assert "/run/secrets/model.key" in shipped
    (tmp_path / "gateway.toml").write_text(shipped.replace("/run/secrets/", ""))
    done = preloaded.run(["serve", "--check", "gateway.toml"], b"", os.environ, 120, cwd=tmp_path)
    assert (done.returncode, b"gateway.toml is valid" in done.stdout) == (0, True), done.stderr


def test_the_compose_file_names_what_is_there_and_takes_all_privileges() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    service = compose["services"]["toolspeak"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).samefile(DEPLOY / "Containerfile")
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    image = dict(instructions((DEPLOY / "Containerfile").read_text()))
    assert "/etc/toolspeak/gateway.toml" in json.loads(image["CMD"])
    mounted = [volume.split(":")[1] for volume in service["volumes"]]
    assert mounted == ["/etc/toolspeak/gateway.toml", image["WORKDIR"]]
    assert {volume.split(":")[0] for volume in service["volumes"]} - {"./gateway.toml"} == set(compose["volumes"])
    assert set(service["secrets"]) == set(compose["secrets"])
    assert [port.rpartition(":")[2] for port in service["ports"]] == [image["EXPOSE"]]


def test_the_build_sends_the_engine_what_is_copied_and_no_more() -> None:
    lines = (ROOT / ".containerignore").read_text().splitlines()
    assert (ROOT / ".dockerignore").read_text().splitlines() == lines
    copied = {
        source
        for word, rest in instructions((DEPLOY / "Containerfile").read_text())
        if word == "COPY" and "--from" not in rest
        for source in rest.split()[:-1]
    }
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
