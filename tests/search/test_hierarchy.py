"""Choosing by levels as people use it: an index with groups, a model around a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak.search.group_tree import Group
from toolspeak.search.hierarchy import TREES, HierarchyRouter, Trees

AREAS = ("mail", "lamp", "song", "game", "file", "task")
VERBS = ("send", "find", "move", "drop", "show", "mark", "copy", "sort")


def tools_of(area: str) -> list[ts.Tool]:
    return [ts.Tool(f"{area}_{verb}", f"To {verb} a {area}.") for verb in VERBS]


TOOLS = [tool for area in AREAS for tool in tools_of(area)]
GROUPS = {area: f"{area}_*" for area in AREAS}


def names(model: ts.Scripted, turn: int) -> list[str]:
    return [tool.name for tool in model.requests[turn].tools or ()]


def test_an_index_with_groups_is_chosen_from_by_levels() -> None:
    model = native(calls(("lamp_tools", {})), calls(("lamp_show", {})))
    call = ts.call("Show me the lamp", tools=ts.ToolIndex(TOOLS, groups=GROUPS), model=model)
    assert call.name == "lamp_show"
    assert names(model, 0) == [*(f"{area}_tools" for area in AREAS), "none_of_these"]
    assert names(model, 1) == [*(f"lamp_{verb}" for verb in VERBS), "none_of_these"]


def test_many_groups_are_offered_under_their_own_names() -> None:
    areas = [f"{area}{i}" for area in AREAS for i in range(5)][:25]
    tools = [tool for area in areas for tool in tools_of(area)]
    model = native(calls(("lamp2", {})), calls(("lamp2_tools", {})), calls(("lamp2_show", {})))
    index = ts.ToolIndex(tools, groups={area: f"{area}_*" for area in areas})
    assert ts.call("Show me the second lamp", tools=index, model=model).name == "lamp2_show"
    assert names(model, 0) == [*(f"{area}_tools" for area in areas), "none_of_these"]
    assert "Did you mean 'lamp2_tools'" in model.requests[1].messages[-1]["content"]
    assert "mail0_send" not in model.requests[1].messages[-1]["content"]


def test_an_index_without_groups_is_searched() -> None:
    model = native(calls(("lamp_show", {})))
    ts.call("Show me the lamp", tools=ts.ToolIndex(TOOLS), model=model)
    assert "lamp_show" in names(model, 0)


def test_groups_are_made_where_none_are_given() -> None:
    model = native(calls(("lamp_tools", {})), calls(("lamp_show", {})))
    reply = ts.decide("Show me the lamp", tools=TOOLS, model=HierarchyRouter(model))
    assert [call.name for call in reply.calls] == ["lamp_show"]
    assert ("group-opened", "lamp: 8 tools") in [(note.rule, note.detail) for note in reply.notes]


def test_where_no_group_fits_the_index_is_searched() -> None:
    model = native(calls(("none_of_these", {})), calls(("song_find", {})))
    reply = ts.decide("Find the song", tools=ts.ToolIndex(TOOLS, groups=GROUPS), model=model)
    assert [call.name for call in reply.calls] == ["song_find"]
    assert "song_find" in names(model, 1)
    assert "search_tools" in names(model, 1)


def test_what_was_used_stays_shown_while_it_goes_on() -> None:
    box = ts.Toolbox(ts.tool(lambda: "on", name="lamp_show", description="Show."), *TOOLS[:8], *TOOLS[16:])
    model = native(calls(("lamp_tools", {})), calls(("lamp_show", {})), "It is on.")
    reply = ts.run("Is the lamp on?", tools=box, model=HierarchyRouter(model, {"lamp": "lamp_*"}))
    assert reply.text == "It is on."


def test_an_index_takes_the_tools_of_its_groups() -> None:
    index = ts.ToolIndex(groups={"mail": tools_of("mail"), "lamps": Group("light", [tools_of("lamp")], "Light.")})
    assert [tool.name for tool in index] == [f"{area}_{verb}" for area in ("mail", "lamp") for verb in VERBS]
    assert [(group.name, len(group.members)) for group in index.groups] == [("mail", 8), ("light", 8)]


def test_groups_are_kept_in_a_file(tmp_path: Path) -> None:
    ts.ToolIndex(TOOLS, groups={"home": {"light": "lamp_*"}, "mail": "mail_*"}).save(tmp_path / "index")
    home, mail = ts.ToolIndex.load(tmp_path / "index").groups
    assert (home.name, [inner.name for inner in home.members]) == ("home", ["light"])
    assert mail.members == ("mail_*",)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"mail": "mial_send"}, "mail_send"),
        ("mail_*", "expected a mapping"),
        ({}, "expected a mapping"),
        ({"mail": 5}, "a tool is a function"),
        (["mail_send"], "in none"),
    ],
)
def test_groups_that_are_none(groups: object, said: str) -> None:
    with pytest.raises(ts.ToolspeakError, match=said):
        ts.ToolIndex(TOOLS, groups=groups)


def test_explain_shows_the_first_list() -> None:
    model = ts.Speaker(ts.Scripted("Hello."), "tool-json")
    told = ts.explain("Show me the lamp", tools=ts.ToolIndex(TOOLS, groups=GROUPS), model=model)
    assert "lamp_tools" in json.dumps(told.messages)
    assert '"lamp_show"' not in json.dumps(told.messages)


def test_groups_of_a_set_are_made_once() -> None:
    index = ts.ToolIndex(TOOLS, groups=GROUPS)
    first, again = (
        TREES.of(index.groups, tuple(ts.Toolbox(index)), 8),
        TREES.of(index.groups, tuple(ts.Toolbox(index)), 8),
    )
    assert first is again
    index.add(ts.Tool("mail_burn", "To burn a mail."))
    assert TREES.of(index.groups, tuple(index), 8) is not first


def test_the_groups_that_are_kept_are_those_that_were_used_last() -> None:
    trees = Trees(sets=2)
    old, other, new = (tuple(tools_of(area)) for area in AREAS[:3])
    kept = trees.of((), old, 8)
    trees.of((), other, 8)
    assert trees.known((), old, 8) is kept
    trees.of((), new, 8)
    assert trees.known((), old, 8) is kept
    assert trees.known((), other, 8) is None


def test_a_text_model_that_takes_the_others_place_is_spoken_for() -> None:
    made = HierarchyRouter(native(), GROUPS, most=5).around(ts.Scripted("Hello."))
    assert isinstance(made, HierarchyRouter)
    assert isinstance(made.model, ts.Speaker)


def test_what_is_pinned_stands_in_every_list() -> None:
    model = native(calls(("lamp_tools", {})), calls(("mail_send", {})))
    ts.decide("Send it", tools=TOOLS, model=HierarchyRouter(model, GROUPS, pinned=["mail_s[eh]*"]))
    for turn in (0, 1):
        assert names(model, turn)[:2] == ["mail_send", "mail_show"]


def test_a_model_that_decides_by_likelihood_is_searched_for() -> None:
    model = ts.Scripted([calls(("lamp_show", {}))], capabilities=["tools", "scored"])
    ts.call("Show me the lamp", tools=ts.ToolIndex(TOOLS, groups=GROUPS), model=model)
    assert "lamp_show" in names(model, 0)
