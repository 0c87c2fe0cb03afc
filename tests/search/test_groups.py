"""Groups that are made: by how names begin, then by words; short lists, every tool once, the same each time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolspeak.search.group_tree import WHOLE, Group, by_prefix, in_order, tools_in, tree
from toolspeak.search.word_groups import grouped
from toolspeak.types import Tool

SONGS = [Tool(f"{verb}_{what}", f"{verb} the {what} of music that plays") for verb in ("play", "stop", "loop")
         for what in ("song", "album", "artist")]  # fmt: skip
WEATHER = [Tool(f"{what}In{when}", f"{what} in a city {when}: the weather") for what in ("rain", "wind", "sun", "snow")
           for when in ("Morning", "Evening")]  # fmt: skip


def shape(group: Group) -> dict[str, list[str]]:
    """The groups at the top with the names of their tools."""
    return {
        member.name: [tool.name for tool in tools_in(member)] if isinstance(member, Group) else []
        for member in group.members
    }


def lists(group: Group) -> Iterator[Group]:
    yield group
    for member in group.members:
        if isinstance(member, Group):
            yield from lists(member)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["github_open", "github_star", "github_fork", "maps_find"], ["github", "maps_find"]),
        (["create_user", "list_users", "getUser", "create_team"], ["user", "create_team"]),  # a verb is no subject
        (["a.b.one", "a.b.two", "a.b.three", "a.c"], ["a_b", "a.c"]),  # they all begin with a
        (["github_open", "github_star"], ["github_open", "github_star"]),  # two are none
        (["天气", "天气", "新闻"], ["天气", "天气", "新闻"]),
    ],
)
def test_names_that_begin_alike(names: list[str], groups: list[str]) -> None:
    assert [member.name for member in by_prefix([Tool(name) for name in names])] == groups


def test_a_tool_more_changes_no_other_group_of_names() -> None:
    tools = [Tool(f"{area}_{i}") for area in ("mail", "lamp", "song", "game") for i in range(5)]
    before = shape(tree(Group(""), tools, in_order))
    after = shape(tree(Group(""), [*tools, Tool("game_9")], in_order))
    assert [name for name in after if after[name] != before[name]] == ["game"]


def test_words_put_together_what_belongs_together() -> None:
    mixed = [tool for pair in zip(SONGS, WEATHER, strict=False) for tool in pair]
    found = {
        "music" if all(name in {tool.name for tool in SONGS} for name in names) else "weather"
        if all(name in {tool.name for tool in WEATHER} for name in names) else "mixed"
        for names in shape(grouped(mixed)).values() if names
    }  # fmt: skip
    assert found == {"music", "weather"}


@pytest.mark.parametrize("count", [1, 13, 200, 900])
def test_every_tool_is_in_one_short_list(count: int) -> None:
    tools = [Tool(f"t{i}", f"word{i % 7} word{i % 11} and word{i % 29}") for i in range(count)]
    made = grouped(tools)
    assert sorted(tool.name for tool in tools_in(made)) == sorted(tool.name for tool in tools)
    assert all(2 <= len(group.members) <= 12 or group is made for group in lists(made))
    assert shape(made) == shape(grouped(tools))


def test_tools_that_say_the_same_or_nothing_are_parted_all_the_same() -> None:
    for tools in ([Tool(f"t{i}", "the same") for i in range(300)], [Tool("_" * (i + 1)) for i in range(50)]):
        assert all(len(group.members) <= 12 for group in lists(grouped(tools)))


def test_groups_that_were_given_stay_and_long_ones_are_parted() -> None:
    tools = [*SONGS, *WEATHER, *(Tool(f"extra{i}", f"extra {i}") for i in range(30))]
    given = Group("", (Group("mine", tuple(tools[17:]), "What is mine."), Group("songs", tuple(SONGS))))
    made = grouped(tools, given)
    mine = made.members[0]
    assert (mine.name, mine.description, len(list(tools_in(mine)))) == ("mine", "What is mine.", 30)
    assert len(mine.members) <= 12


def user_groups(count: int, each: int = 4) -> tuple[Group, list[Tool]]:
    groups = [
        Group(
            f"area{i}",
            tuple(Tool(f"{verb}_{i}", f"{verb} area {i}") for verb in ("send", "find", "move", "show")[:each]),
        )
        for i in range(count)
    ]
    return Group("", tuple(groups)), [tool for group in groups for tool in group.members]


@pytest.mark.parametrize("count", [2, 9, 13, 25, WHOLE])
@pytest.mark.parametrize("loose", [0, 2, 30])
def test_groups_of_a_user_stay_whole_however_many_they_are(count: int, loose: int) -> None:
    root, tools = user_groups(count)
    made = grouped([*tools, *(Tool(f"extra{i}", f"word{i % 7} and word{i % 11}") for i in range(loose))], root)
    top = shape(made)
    assert list(top)[:count] == [group.name for group in root.members]
    assert all(top[f"area{i}"] == [f"{verb}_{i}" for verb in ("send", "find", "move", "show")] for i in range(count))
    assert len(top) <= max(12, count + 3)
    assert len(list(tools_in(made))) == len(tools) + loose


def test_groups_inside_a_group_of_a_user_stay_whole_too() -> None:
    root, tools = user_groups(25)
    made = grouped(tools, Group("", (Group("all", root.members), Group("other", (Tool("a"), Tool("b"))))))
    assert [group.name for group in made.members[0].members] == [group.name for group in root.members]


def test_more_groups_than_a_list_may_have_are_merged_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    root, tools = user_groups(WHOLE + 1)
    made = grouped(tools, root)
    assert len(made.members) <= 8
    assert made.members[0].name == "area0, area1, area2, area3, area4, area5"
    assert [group.name for part in made.members for group in part.members] == [group.name for group in root.members]
    assert "41 groups are too many for one list (at most 40) and are merged: area0, area1" in caplog.text
    caplog.clear()
    grouped(user_groups(WHOLE)[1], user_groups(WHOLE)[0])
    assert not caplog.text


def test_very_many_groups_are_merged_into_short_lists() -> None:
    root, tools = user_groups(1_000, each=2)
    made = grouped(tools, root)
    assert all(len(group.members) <= WHOLE for group in lists(made))
    assert len(list(tools_in(made))) == len(tools)
