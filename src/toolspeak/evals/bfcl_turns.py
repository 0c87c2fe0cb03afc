"""Runs the multi-turn cases of BFCL (Berkeley Function-Calling Leaderboard) against its simulated programs. Its own
checker judges them.

Each turn is a run: the model calls the programs' functions until it answers in words. The package's code executes the
calls in memory. Afterwards its checker executes them again beside the ground truth, and compares the state of the
programs and their responses. A value in a call becomes Python text by `repr`, so that no code in it can run.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ..errors import MissingExtra
from ..schema.infer import as_tools
from ..types import Message, Reply, Tool
from . import bfcl_package as package
from .case import RIGHT, Ask, Case, Kind, Verdict

CATEGORIES = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
MATHS = "MathAPI"

KINDS: dict[str, Kind] = {"multi_turn:empty_turn_model_response": "no call"}
"""Kinds of error by the checker's name for them. Anything else means that the calls had another effect: a wrong value.
"""

Describe = Callable[[Mapping[str, Any]], dict[str, Any]]
_plays = itertools.count()


def cases(
    entries: Sequence[Mapping[str, Any]], answers: Mapping[str, Any], category: str, describe: Describe
) -> list[Case]:
    """The cases for these entries. `describe` converts a tool's description from the leaderboard's form. Raises
    MissingExtra."""
    if any(MATHS in entry["involved_classes"] for entry in entries) and importlib.util.find_spec("mpmath") is None:
        raise MissingExtra(f"some cases of bfcl:{category} calculate with mpmath: pip install mpmath")
    return [_case(entry, answers[entry["id"]], category, describe) for entry in entries]


def _case(entry: Mapping[str, Any], truth: list[list[str]], category: str, describe: Describe) -> Case:
    later: dict[str, list[str]] = entry.get("missed_function", {})
    withheld = {name for names in later.values() for name in names}
    docs = {doc["name"]: describe(doc) for program in entry["involved_classes"] for doc in _docs(program)}
    first = as_tools([doc for name, doc in docs.items() if name not in withheld]) or ()
    added = {int(turn): as_tools([docs[name] for name in names]) or () for turn, names in later.items()}
    play = functools.partial(_played, entry, truth, first, added)
    messages = tuple(cast("list[Message]", entry["question"][0]))
    return Case(entry["id"], category, messages, first, truth, _unplayed, match="bfcl", play=play)


def _unplayed(_: Reply) -> Verdict:
    return Verdict(False, "error", "a conversation is judged as a whole")


@functools.cache
def _docs(program: str) -> list[Mapping[str, Any]]:
    name = package.loaded("constants.executable_backend_config").MULTI_TURN_FUNC_DOC_FILE_MAPPING[program]
    path = package.ensure() / package.ROOT / "data" / "multi_turn_func_doc" / name
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


# ------------------------------------------------------------------ playing


@dataclass(slots=True)
class World:
    """The simulated programs of one conversation in one play of it, and the executed calls of each turn."""

    entry: Mapping[str, Any]
    name: str = field(default_factory=lambda: f"play{next(_plays)}")
    turns: list[list[list[str]]] = field(default_factory=list[list[list[str]]])

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The response of one of the programs' functions."""
        written = f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        self.turns[-1].append([written])
        long = "long_context" in self.entry["id"]
        results, _ = _programs()["execute_multi_turn_func_call"](
            [written], self.entry["initial_config"], self.entry["involved_classes"], self.name, self.entry["id"], long
        )
        return results[0]

    def check(self, truth: Sequence[Sequence[str]]) -> dict[str, Any]:
        """The checker's verdict on all turns."""
        checker = _checker().multi_turn_checker
        return checker(self.turns, truth, self.entry, self.entry["id"].rpartition("_")[0], self.name)

    def forget(self) -> None:
        """Releases the programs, which the package stores under names that begin with this play's name."""
        programs = _programs()
        for key in [key for key in programs if key.startswith(f"{self.name}_")]:
            del programs[key]


async def _played(
    entry: Mapping[str, Any],
    truth: Sequence[Sequence[str]],
    first: Sequence[Tool[..., Any]],
    added: Mapping[int, Sequence[Tool[..., Any]]],
    ask: Ask,
) -> tuple[Reply, Verdict]:
    """The last reply, with the calls of all turns, and the verdict."""
    world, tools, reply = World(entry), list(first), Reply()
    prompts = package.loaded("constants.default_prompts")
    try:
        for turn, question in enumerate(entry["question"]):
            messages = cast("list[Message]", question)
            if turn in added:
                tools += added[turn]
                messages: list[Message] = [
                    {"role": "user", "content": prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC}
                ]
            world.turns.append([])
            offered = [replace(tool, function=_function(world, tool.name)) for tool in tools]
            last = await ask([*reply.messages, *messages], offered, prompts.MAXIMUM_STEP_LIMIT)
            calls = (*reply.calls, *(call for step in last.steps for call in step.reply.calls))
            reply = replace(last, calls=calls)
            if last.finish == "limit":
                return reply, Verdict(
                    False, "count", f"turn {turn + 1} did not end in {prompts.MAXIMUM_STEP_LIMIT} steps"
                )
        return reply, _verdict(world.check(truth))
    finally:
        world.forget()


def _function(world: World, name: str) -> Callable[..., Any]:
    async def call(**arguments: Any) -> str:  # async, so that calls of one reply are carried out in their order
        return world.call(name, arguments)

    return call


def _verdict(result: Mapping[str, Any]) -> Verdict:
    if result["valid"]:
        return RIGHT
    details: Mapping[str, Any] = result.get("details", {})
    missing = details.get("missing_items") or details.get("differences") or ""
    return Verdict(
        False, KINDS.get(result["error_type"], "wrong value"), f"{result['error_message']} {missing}".strip()[:600]
    )


# ------------------------------------------------------------------ the package's code


@functools.cache
def _checker() -> Any:
    """The checker's module. It imports its programs on demand under a name that exists only while the package is being
    loaded, so it gets an import function that finds them."""
    module = package.loaded("eval_checker.multi_turn_eval.multi_turn_checker")
    _names(module)["importlib"] = types.SimpleNamespace(import_module=_imported)
    return module


def _programs() -> dict[str, Any]:
    """The globals of the module that executes calls; the package also stores the programs there."""
    return _names(_checker())


def _names(checker: Any) -> dict[str, Any]:
    return checker.execute_multi_turn_func_call.__globals__


def _imported(name: str) -> Any:
    return package.loaded(name.removeprefix(f"{package.ROOT}."))
