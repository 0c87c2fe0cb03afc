"""A policy: rules that say which calls run, need approval, or never run.

Forbidding rules come before allowing ones: `deny`, then `ask`, then `allow`. The first rule that matches a call
decides; a call without a rule needs approval. Forbidding rules match widely and allowing ones narrowly. A call for
which a match cannot be decided needs approval (see `globs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from ..api.json_stream import record
from ..errors import UsageError
from ..schema.call_dicts import read_call
from ..schema.dataclass_parameters import clear_names
from ..schema.suggestions import did_you_mean, listed, near
from ..types import Message, Origin, Tool, ToolCall, ToolEffect
from .content_origin import origins
from .globs import name_fits
from .rule_arguments import ELSEWHERE, without_arguments
from .rules import EFFECTS, Rule, parsed, rule

Verdict = Literal["allow", "ask", "deny"]
VERDICTS = get_args(Verdict)
ORIGINS = get_args(Origin)
STRICTER: Mapping[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's decision on a call: the `verdict`, the `rule` that decided ("" for none), and `why`, as text."""

    verdict: Verdict
    rule: str
    why: str
    origin: Origin = "trusted"


@clear_names
@dataclass(frozen=True, slots=True)
class Policy:
    """Which calls may run (`allow`), need approval (`ask`), or are refused (`deny`).

    A rule is a pattern of names (`"read_*"`), a class of tools (`"effect:read"`), or a name with patterns of arguments
    (`'remove(path="build/**")'`). `deny` is checked first, then `ask`, then `allow`; a call without a matching rule
    needs approval. Once the conversation contains an untrusted result, `after_untrusted` says whether a call that does
    more than read needs approval, is refused, or is unaffected. `tools` declares, by patterns of names, what tools do
    and return, if they do not declare it or declare it wrongly: `{"get_*": {"effect": "read", "reads": "trusted"}}`.
    Raises UsageError for an invalid rule.
    """

    allow: Sequence[str] = ()
    ask: Sequence[str] = ()
    deny: Sequence[str] = ()
    after_untrusted: Verdict = "ask"
    tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    _rules: Mapping[Verdict, tuple[Rule, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.after_untrusted not in VERDICTS:
            raise UsageError(f"after_untrusted: expected ask, deny or allow, got {self.after_untrusted!r:.80}")
        rules = {name: _rules(name, getattr(self, name)) for name in ("deny", "ask", "allow")}
        object.__setattr__(self, "_rules", rules)
        _check_labels(self.tools)

    def decide(
        self,
        call: Any,
        messages: Sequence[Message] = (),
        *,
        tools: Sequence[Tool[..., Any]] = (),
        labels: bool = True,
    ) -> Decision:
        """Return the policy's decision on a call after these messages.

        `call` is a ToolCall, a dict in any of the usual formats, or a text such as `remove(path="build/x")`. `tools`
        are the available tools, for their effects and origins. Without `labels`, labels in the messages are ignored,
        because somebody else may have written them.
        """
        known = {tool.name: tool for tool in tools}
        wanted = _call(call)
        tool = known.get(wanted.name)
        effect = cast("ToolEffect", self._label(wanted.name, "effect", tool.effect if tool else "write"))
        untrusted = "untrusted" in origins(messages, lambda name: self.origin(name, known.get(name)), labels=labels)
        origin: Origin = "untrusted" if untrusted else "trusted"
        first = self._by_rules(wanted, tool, effect)
        then: Verdict = self.after_untrusted if untrusted > (effect == "read") else "allow"
        if STRICTER[then] <= STRICTER[first.verdict]:
            return Decision(first.verdict, first.rule, first.why, origin)
        why = f"the conversation contains untrusted results, and {wanted.name} does more than read"
        return Decision(self.after_untrusted, "after_untrusted", why, origin)

    def unmatched(self, tools: Sequence[Tool[..., Any]]) -> Iterator[str]:
        """Yield the parts of the policy that match none of these tools: a misspelled rule forbids nothing."""
        names = [*dict.fromkeys(name for tool in tools for name in _names(tool.name, tool))]
        for verdict in ("deny", "ask", "allow"):
            for one in self._rules[verdict]:
                yield from (f"{verdict} {one.text}: {why}" for why in _unmatched(one, tools, names))
        for pattern in self.tools:
            if not any(name_fits(pattern, name, wide=False) for name in names):
                yield f"tools.{pattern}: it matches none of the tools.{did_you_mean(near(pattern, names))}"

    def origin(self, name: str, tool: Tool[..., Any] | None) -> Origin:
        """Return whether the results of a tool are trusted. Those of an unknown tool, or one run by somebody else, are
        not."""
        own = tool.reads if tool and tool.function else "untrusted"
        return cast("Origin", self._label(name, "reads", own))

    def _label(self, name: str, what: str, own: str) -> str:
        """Return the policy's label for a tool, from the first matching pattern; else the tool's own label."""
        named = (row for pattern, row in self.tools.items() if name_fits(pattern, name, wide=False))
        rows = (row[what] for row in named if what in row)
        return next(rows, own)

    def _by_rules(self, call: ToolCall, tool: Tool[..., Any] | None, effect: ToolEffect) -> Decision:
        names, arguments = _names(call.name, tool), _with_defaults(call.arguments, tool)
        takes = _takes(tool)
        doubts: list[str] = []
        for verdict in ("deny", "ask"):
            for one in self._rules[verdict]:
                answer = one.forbids(names, effect, arguments, takes)
                if answer:
                    return Decision(verdict, one.text, f"{verdict} {one.text}")
                doubts += [one.text] if answer is None else []
        if doubts:
            return Decision("ask", doubts[0], f"it is unclear whether {doubts[0]} matches this call")
        for one in self._rules["allow"]:
            if one.allows(call.name, effect, arguments):
                return Decision("allow", one.text, f"allow {one.text}")
        return Decision("ask", "", "no rule allows it")


def checked_policy(value: Any) -> Policy | None:
    """Return the policy in an option, None for none. Raises UsageError."""
    if value is None or isinstance(value, Policy):
        return value
    raise UsageError(f'policy: expected a toolspeak.Policy, such as Policy(allow=["read_*"]), received {value!r:.80}')


def policy_of(values: Mapping[str, Any]) -> Policy:
    """Return the policy from a file or table with the names of Policy's parameters. Raises UsageError."""
    names = ("allow", "ask", "deny", "after_untrusted", "tools")
    for name in values:
        if name not in names:
            raise UsageError(
                f"a policy has no {name!r:.80}.{did_you_mean(near(name, names)) or f' It has {listed(names)}'}"
            )
    return Policy(**values)


def _rules(name: str, texts: Any) -> tuple[Rule, ...]:
    if not isinstance(texts, list | tuple):
        raise UsageError(f"{name}: expected a list of rules, got {texts!r:.80}")
    rows: list[Rule] = []
    for at, text in enumerate(cast("list[Any]", texts)):
        try:
            rows.append(rule(text))
        except UsageError as error:
            raise UsageError(f"{name}[{at}]: {error}") from None
    return tuple(rows)


def _check_labels(tools: Any) -> None:
    """Raises UsageError for invalid labels of tools."""
    words = {"effect": EFFECTS, "reads": ORIGINS}
    for pattern, row in _fields("tools", tools):
        for what, value in _fields(f"tools.{pattern}", row):
            if what not in words:
                raise UsageError(f"tools.{pattern}: unknown field {what!r:.80}.{did_you_mean(near(what, words))}")
            if value not in words[what]:
                raise UsageError(f"tools.{pattern}.{what}: expected {' or '.join(words[what])}, got {value!r:.80}")


def _fields(place: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise UsageError(f'{place}: expected a table, such as {{"get_*": {{"effect": "read"}}}}, got {value!r:.80}')
    return [(str(name), inner) for name, inner in cast("Mapping[Any, Any]", value).items()]


def _unmatched(one: Rule, tools: Sequence[Tool[..., Any]], names: Sequence[str]) -> Iterator[str]:
    """Yield what in a rule matches none of the tools, which have these names."""
    meant = [tool for tool in tools if one.may_mean(_names(tool.name, tool), tool.effect)]
    if not meant:
        yield f"it matches none of the tools.{did_you_mean(near(one.name, names))}"
        return
    yield from without_arguments([name for name, _ in one.arguments], [tool.parameters for tool in meant])


def _call(call: Any) -> ToolCall:
    if isinstance(call, str):
        name, arguments = parsed(call)
        return ToolCall("", name, dict(arguments))
    return read_call(call)


def _names(name: str, tool: Tool[..., Any] | None) -> list[str]:
    """Return the names by which a forbidding rule may know a tool: its own, and that of its function, without a prefix."""
    function = tool.function if tool else None
    others = [getattr(function, "__name__", None), getattr(function, "name", None)]
    return [name, *(one for one in others if isinstance(one, str))]


def _takes(tool: Tool[..., Any] | None) -> Mapping[str, Any] | None:
    """Return the arguments of a tool; None if it is unknown, or if its schema may define more elsewhere."""
    if tool is None or "properties" not in tool.parameters or ELSEWHERE & tool.parameters.keys():
        return None
    return record(tool.parameters["properties"])


def _with_defaults(arguments: Mapping[str, Any], tool: Tool[..., Any] | None) -> Mapping[str, Any]:
    """Return the arguments as the function gets them, with the defaults in its schema."""
    properties = record(tool.parameters.get("properties")) if tool else {}
    schemas = {name: record(one) for name, one in properties.items()}
    return {**{name: one["default"] for name, one in schemas.items() if "default" in one}, **arguments}
