"""Reads the policies in the configuration: the gateway's own, and those of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...errors import UsageError
from ...policy.policy import Policy
from ...policy.rules import EFFECT, parsed, rule
from ...schema.suggestions import listed
from ..call_policy import CallPolicy
from .fields import Table, Unexpected, flag, many, number, one_of
from .settings import Audit, GatewaySettings


def read_call_policy(table: Table) -> CallPolicy:
    """Return the policy in a table. Errors are added to the file's."""
    rules = {name: table.take(name, many(_rule), ()) for name in ("allow", "ask", "deny")}
    after: Any = table.take("after_untrusted", one_of("ask", "deny", "allow"), "ask")
    on_ask: Any = table.take("on_ask", one_of("refuse", "mark"), "refuse")
    tools = {name: _labels(row) for name, row in table.tables("tools")}
    table.close()
    return CallPolicy(Policy(**rules, after_untrusted=after, tools=tools), on_ask)


def _rule(value: Any) -> str:
    try:
        return rule(value).text
    except UsageError as error:
        raise Unexpected(f"a rule: {error}") from None


def _labels(table: Table) -> dict[str, str]:
    labels = {
        "effect": table.take("effect", one_of("read", "write", "destructive"), ""),
        "reads": table.take("reads", one_of("trusted", "untrusted"), ""),
    }
    table.close()
    return {name: word for name, word in labels.items() if word}


def read_audit(top: Table, path: Callable[[Table, str], str]) -> Audit | None:
    """Return where decisions are stored besides the log, None for nowhere. `path` reads the field with the file's path."""
    if not top.has("audit"):
        return None
    table = top.table("audit")
    usual = Audit(path(table, "FILE"))
    audit = Audit(
        usual.path,
        arguments=table.take("arguments", flag, usual.arguments),
        age=table.take("age", number(1, 1e10), usual.age),
    )
    table.close()
    return audit


def audit_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary line of the audit's file."""
    if (audit := settings.audit) is None:
        return []
    return [
        f"audit   {audit.path}: decisions about calls, {'with' if audit.arguments else 'without'} arguments, kept for {audit.age:,.15g} s"
    ]


def policy_lines(settings: GatewaySettings) -> list[str]:
    """Return the summary lines of the policies."""
    owners = [("all", settings.policy), *((f"key {key.name}", key.policy) for key in settings.keys)]
    lines = [f"policy  {owner}: {_summary(rule)}" for owner, rule in owners if rule]
    warnings = [(owner, warning) for owner, rule in owners if rule for warning in _undeclared(rule, settings)]
    return lines + [f"warning policy {owner}: {warning}" for owner, warning in warnings]


def _undeclared(rule: CallPolicy, settings: GatewaySettings) -> Iterator[str]:
    """Yield a warning if the policy allows tools of clients without saying what they do. The gateway's own tools
    declare themselves: those of `hosted`, and those that begin with the prefix of a server in `mcp`."""
    own = (EFFECT, *(server.prefix for server in settings.mcp.values() if server.prefix))
    names = dict.fromkeys(parsed(one)[0] for one in rule.policy.allow)
    named = [name for name in names if not name.startswith(own) and name not in settings.hosted]
    missing = [f"the tools of {name!r}" if "*" in name else name for name in named if not rule.declares(name)]
    if missing and rule.policy.after_untrusted != "allow":
        yield (
            f"[policy.tools] has no entry for {listed(missing)}. A client's tool without an entry counts as one that writes, "
            "and its results as untrusted: after its first result, its calls are refused"
        )


def _summary(rule: CallPolicy) -> str:
    policy = rule.policy
    count = len(policy.allow) + len(policy.ask) + len(policy.deny)
    return f"{count} rule{'s' * (count != 1)}; after an untrusted result {policy.after_untrusted}; asked about: {rule.on_ask}"
