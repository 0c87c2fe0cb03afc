"""The output of `toolspeak route`: the ranking, the tools that would be shown with their tokens, and missed tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.base import Model, TokenCounter
from ..schema.phrases import beginning
from ..types import Message, Request, Tool

if TYPE_CHECKING:
    from ..evals.recall import Recall
    from ..search import ToolIndex
    from .terminal import Out

    Tools = tuple[Tool[..., Any], ...]

WIDE = 72
"""The most characters of a description that are printed."""
MISSES = 20
"""The most misses that are printed; all are in JSON and on the page."""
PLAIN: Message = {"role": "user", "content": "Hi"}


@dataclass(frozen=True, slots=True)
class RoutingResult:
    """The result for one question: the ranked tools, the names of the tools that a model sees in their order, the name
    of the search tool ("" for none), and the tokens of their definitions and of all definitions, counted by the model
    or estimated."""

    question: str
    model: str
    ranking: list[tuple[Tool[..., Any], float]]
    selected: tuple[str, ...]
    search: str
    total: int
    tokens: tuple[int, int]
    counted: bool

    def as_json(self, k: int) -> dict[str, Any]:
        """Return the result as JSON data, with the first `k` of the ranking."""
        ranking = [
            {
                "name": tool.name,
                "score": round(score, 6),
                "shown": tool.name in self.selected,
                "description": tool.description,
            }
            for tool, score in self.ranking[:k]
        ]
        sent, whole = self.tokens
        return {
            "question": self.question,
            "model": self.model,
            "ranking": ranking,
            "shown": list(self.selected),
            "search": self.search or None,
            "tools": self.total,
            "tokens": {"shown": sent, "all": whole, "counted": self.counted},
        }


def routed(question: str, index: ToolIndex, model: Model) -> RoutingResult:
    """Rank the tools for a question, and select those that the model sees."""
    from ..drive import run_sync
    from ..models.tool_calling import calling
    from ..search.router import ToolRouter
    from .terminal import Progress

    calling_model = calling(model)
    tools = tuple(index)
    router = ToolRouter(calling_model, index)
    progress = Progress()
    progress.waiting("choosing")
    try:
        ranking = index.search(question, len(tools))
        request = run_sync(router.narrowed(Request([{"role": "user", "content": question}], tools)))
        sent = request.tools or ()
        counts = [run_sync(_counted(calling_model, some)) for some in (sent, tools)]
    finally:
        progress.ready()
    tokens = [count for count in counts if count is not None]
    counted = len(tokens) == len(counts)
    if not counted:
        tokens = [_about(some) for some in (sent, tools)]
    search = [tool.name for tool in sent if tool.name not in index]
    return RoutingResult(
        question,
        calling_model.name,
        ranking,
        tuple(tool.name for tool in sent if tool.name in index),
        search[0] if search else "",
        len(tools),
        (tokens[0], tokens[1]),
        counted,
    )


async def _counted(model: Model, tools: Tools) -> int | None:
    """Return the tokens of the definitions by the model's own tokenizer; None if it cannot count them."""
    from ..errors import ToolspeakError
    from ..models.speaker import Speaker

    if not tools:
        return 0
    if not isinstance(model, TokenCounter) or (isinstance(model, Speaker) and not _here(model.model)):
        return None
    try:
        if "scored" in model.capabilities:  # such a model sees one tool at a time
            return await model.count(Request(prompt="\n".join(map(_definition, tools))))
        bare = await model.count(Request([PLAIN]))
        whole = await model.count(Request([PLAIN], tools))
    except ToolspeakError:
        return None
    return None if bare is None or whole is None or whole <= bare else whole - bare


def _here(model: Model) -> bool:
    """Whether the model can be used without a download, which a count of tokens is not worth."""
    from ..models.embedded.local import Local
    from ..models.embedded.weights import present

    return not isinstance(model, Local) or model.path is not None or present()


def _about(tools: Tools) -> int:
    from ..plan.token_estimate import about_tool

    return sum(map(about_tool, tools))


def _definition(tool: Tool[..., Any]) -> str:
    from ..api.openai_chat import write_tool

    return json.dumps(write_tool(tool), ensure_ascii=False)


# ------------------------------------------------------------------ for people


def print_routing(out: Out, routing: RoutingResult, k: int) -> None:
    """Print the first `k` of the ranking, and which tools the model sees."""
    from .eval_view import print_table

    if routing.ranking:
        rows = [
            [
                str(rank),
                "✓" if tool.name in routing.selected else "–",
                f"{score:.3f}",
                tool.name,
                _short(tool.description),
            ]
            for rank, (tool, score) in enumerate(routing.ranking[:k], 1)
        ]
        print_table(out, ["", "shown", "score", "tool", "what it does"], rows)
        if left := len(routing.ranking) - len(rows):
            out.line(f"… and {left:,} more (-k N)")
    else:
        out.line("No tool shares a word with the question. --embed minilm ranks by meaning.")
    sent, whole = routing.tokens
    about = "" if routing.counted else "about "
    if len(routing.selected) == routing.total:
        out.line(f"{routing.model} is shown all {routing.total:,} tools: {about}{whole:,} tokens")
        return
    search = f" and {routing.search}" if routing.search else ""
    share = f"{100 * sent / whole:.2g} %" if whole else "–"
    out.line(
        f"{routing.model} is shown {len(routing.selected)} of {routing.total:,} tools{search}: "
        f"{about}{sent:,} tokens of {whole:,} ({share})"
    )


def misses(out: Out, recall: Recall, k: int) -> None:
    """Print the needed tools that are not among the first `k`, and the tools that are."""
    from ..evals.recall_page import needed

    missed = recall.misses(k)
    if not missed:
        out.line(f"{recall.by}: every tool is among the first {k}")
        return
    out.line(f"{recall.by}: {len(missed)} of {len(recall.results)} questions miss a tool among the first {k}")
    for one in missed[:MISSES]:
        out.line(f"line {one.example.line}: {_short(one.example.question)}", before=("✗", "red"))
        out.line(f"    needs  {needed(one, k)}")
        out.line(f"    came   {', '.join(one.first) or 'nothing'}")
    if len(missed) > MISSES:
        out.line(f"… and {len(missed) - MISSES} more (--json, --out FILE.html)")


def _short(text: str) -> str:
    return beginning(" ".join(text[: 10 * WIDE].split()), WIDE)
