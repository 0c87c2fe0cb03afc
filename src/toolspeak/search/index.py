"""An index that finds the tools for a question.

    index = ToolIndex(tools)
    for tool, score in index.search("Will it rain in Xiamen?", k=5): ...

It searches by words (BM25 over names, descriptions, parameters and example questions), and with an embedder also by
meaning.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import hits_html, hits_text
from ..errors import DuplicateTool, MissingExtra, UnknownTool, UsageError
from ..schema.infer import AnyTool, origin, unique
from ..schema.phrases import number_of, short
from ..schema.suggestions import did_you_mean, near
from ..toolbox import Toolbox
from ..types import Tool
from .fields import brief, text, weights
from .group_tree import Group, own_tools, plain, resolve_groups
from .terms import terms, visible

if TYPE_CHECKING:
    from .dense import DenseVectors
    from .embedders import Embedder
    from .postings import Postings

MOST_TERMS = 256
"""The most distinct terms of a question that are looked up; of a longer question half of them from each end."""

EACH = 400
"""Bytes that the places of a tool take."""


class Hits(list[tuple[AnyTool, float]]):
    """The tools that a search found, each with its score, best first. A list with a readable display."""

    def __repr__(self) -> str:
        return hits_text(self)

    def _repr_html_(self) -> str:
        return hits_html(self)


class ToolIndex:
    """Tools that can be searched by what they do. `tools` are functions, Tools, dicts, or a Toolbox.

    `examples` maps the names of tools to questions that they answer. `embed` is an embedder or its name (`"minilm"`,
    `"http://host/v1#model"`; see `search.embedders`): then the meaning of a question counts beside its words. `groups`
    maps names to tools, or to names and patterns of tools, such as `{"mail": mail_box, "home": ["light_*"]}`: then a
    model selects hierarchically (see `search.hierarchy`), and tools that are only in a group are added. Raises
    DuplicateTool for two tools of one name, and MissingExtra without the extra `search`, or `dense` for `embed`.
    Threads may share an index.
    """

    def __init__(
        self,
        tools: Any = (),
        *,
        embed: str | Embedder | None = None,
        examples: Mapping[str, Sequence[str]] | None = None,
        groups: Any = None,
    ) -> None:
        self.groups: tuple[Group, ...] = plain(groups) if groups is not None else ()
        """The groups of the tools, for hierarchical selection, with their names and patterns."""
        self._tools: dict[str, AnyTool] = {}
        self._examples: dict[str, tuple[str, ...]] = {}
        self._placed: list[AnyTool] = []  # by place; a removed tool stays until `_close_up`
        self._places: dict[str, int] = {}
        self._lock = threading.RLock()
        self._postings: Postings = _postings()
        self._meanings: DenseVectors | None = None if embed is None else _meanings(embed)
        self.add(tools if groups is None else _with_own(tools, groups), examples=examples)
        resolve_groups(self.groups, self)

    # what is in it

    def add(self, *tools: Any, examples: Mapping[str, Sequence[str]] | None = None) -> None:
        """Adds tools after the present ones: all of them, or none if one cannot be added."""
        new = tuple(Toolbox(*tools))
        questions = _examples(examples, [tool.name for tool in new])
        self._check_new(new)
        rows = [weights(tool, questions.get(tool.name, ())) for tool in new]
        vectors = None
        if self._meanings and new:  # may take long; searches go on meanwhile
            whole = [text(tool, questions.get(tool.name, ())) for tool in new]
            vectors = self._meanings.of_tools(whole, [brief(tool) for tool in new])
        with self._lock:
            self._check_new(new)
            if self._meanings and vectors is not None:
                self._meanings.add(vectors)
            for place, tool in enumerate(new, len(self._placed)):
                self._tools[tool.name] = tool
                self._places[tool.name] = place
            self._placed += new
            self._examples.update(questions)
            self._postings.add(rows)

    def _check_new(self, tools: Sequence[AnyTool]) -> None:
        for tool in tools:
            if old := self._tools.get(tool.name):
                raise DuplicateTool(
                    f"the index has a tool named {tool.name!r}: {origin(old)}; another came: {origin(tool)}. "
                    "Remove that one first, or rename one",
                    name=tool.name,
                )

    def remove(self, *names: str) -> None:
        """Removes tools: all of them, or none if one is not in the index (UnknownTool)."""
        if strays := [name for name in names if not isinstance(name, str)]:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"expected names of tools, such as index.remove('a', 'b'); got {short(strays[0])}")
        with self._lock:
            for name in names:
                self[name]
            for name in dict.fromkeys(names):
                tool = self._tools.pop(name)
                self._postings.remove(self._places.pop(name), weights(tool, self._examples.pop(name, ())))
            if len(self._placed) > 2 * len(self._tools) + 64:
                self._close_up()

    def _close_up(self) -> None:
        self._postings.compact()
        if self._meanings:
            self._meanings.close_up(list(self._places.values()))
        self._placed = list(self._tools.values())
        self._places = {name: place for place, name in enumerate(self._tools)}

    def __sizeof__(self) -> int:
        """The approximate bytes of the index in memory, without its tools."""
        return EACH * len(self._placed) + sys.getsizeof(self._postings)

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        return True  # an empty index counts as an index too

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(tuple(self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return (name.name if isinstance(name, Tool) else name) in self._tools

    def __getitem__(self, name: str) -> AnyTool:
        if name not in self._tools:
            names = near(str(name), self._tools)
            raise UnknownTool(f"the index has no tool {short(name)}.{did_you_mean(names)}", near=names)
        return self._tools[name]

    def __repr__(self) -> str:
        return f"<ToolIndex of {number_of(len(self), 'tool')}>"

    # searching

    def search(self, question: str, k: int = 10) -> Hits:
        """The best tools for a question with their scores, at most `k`, best first. Ties are in the order of adding.

        A score from 0 to 1 is the share of the question's weight that a tool covers; a rare word among the tools
        weighs more. Tools that share no word with the question are left out. With `embed` the score combines that
        share, relative to the best one, with the similarity of the vectors, scaled from the least to the most similar
        tool.
        """
        if not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"a question is a text; got {short(question)}, a {type(question).__name__}")
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"k, how many tools are wanted, is 1 or more; got {short(k)}")
        words = _looked_up(question)
        from .postings import best

        text = visible(question).strip()
        meant = self._meanings.of_question(text) if self._meanings and self._tools and text else None
        with self._lock:
            scores = self._postings.scores(words)
            if self._meanings and meant is not None:
                from .dense import together

                scores = together(scores, self._meanings.likeness(meant), self._postings.there)
            return Hits((self._placed[place], score) for place, score in best(scores, k))

    # saving and loading

    def save(self, path: str | Path) -> None:
        """Writes the index into one file, atomically. Functions are not saved: see `load`."""
        from .index_file import write

        with self._lock:
            write(Path(path), tuple(self._tools.values()), self._examples, self.groups)

    @classmethod
    def load(cls, path: str | Path, tools: Any = None, *, embed: str | Embedder | None = None) -> ToolIndex:
        """The index that `save` wrote. `tools` provide the functions for the tools of the same names.

        `embed` is given as for a new index: a file must not decide where texts are sent. Raises UsageError for a file
        that is no index, or of another version.
        """
        from .index_file import read

        content, examples, groups = read(Path(path), Toolbox(*(() if tools is None else (tools,))))
        index = cls(content, embed=embed, examples=examples)
        index.groups = groups
        return index


def _looked_up(question: str) -> list[str]:
    """The terms of a question that are looked up: the question may be before or after a long text."""
    words = list(dict.fromkeys(terms(question)))
    if len(words) > MOST_TERMS:
        return [*words[: MOST_TERMS // 2], *words[-MOST_TERMS // 2 :]]
    return list(dict.fromkeys(terms(question, joined=True)))[:MOST_TERMS]


def _with_own(tools: Any, groups: Any) -> list[AnyTool]:
    """The tools, with those that are only in a group."""
    box = {tool.name: tool for tool in Toolbox(tools)}
    return [*box.values(), *(tool for tool in unique(own_tools(groups)).values() if box.get(tool.name) != tool)]


def _postings() -> Postings:
    try:
        import Stemmer as _  # noqa: F401  # pyright: ignore[reportMissingTypeStubs]

        from .postings import Postings
    except ImportError as error:
        raise MissingExtra("an index of tools needs numpy and PyStemmer: pip install 'toolspeak[search]'") from error
    return Postings()


def _meanings(embed: str | Embedder) -> DenseVectors:
    from .dense import DenseVectors
    from .embedders import embedder

    return DenseVectors(embedder(embed))


def _examples(examples: Mapping[str, Sequence[str]] | None, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    checked: dict[str, tuple[str, ...]] = {}
    if examples is not None and not isinstance(examples, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"examples are lists of questions by the names of tools; got {short(examples)}")
    known = set(names)
    for name, questions in (examples or {}).items():
        if name not in known:
            raise UsageError(
                f"there are examples for {short(name)}, but no such tool is added.{did_you_mean(near(str(name), names))}"
            )
        listed = None if isinstance(questions, str) or not isinstance(questions, Iterable) else tuple(questions)  # pyright: ignore[reportUnnecessaryIsInstance]
        if listed is None or not all(isinstance(one, str) for one in listed):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"the examples of {name!r} are a list of questions; got {short(questions)}")
        checked[name] = listed
    return checked
