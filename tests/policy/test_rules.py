"""Rules of a policy: what each means, what it must not mean, and what is said of one that is wrong."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import strategies as st

import toolspeak as ts
from cost import LINEAR, growth
from properties import property_test
from toolspeak.policy.globs import name_fits, text_fits, text_may_fit

BUILD = 'remove(path="build/**")'


def call(name: str, **arguments: Any) -> ts.ToolCall:
    return ts.ToolCall("c", name, arguments)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("read_file", "allow"), ("read_", "allow"), ("READ_file", "ask"), ("xread_file", "ask"),
        ("rm", "deny"), ("RM_all", "deny"), ("Rm", "deny"), ("send", "ask"), ("read_secret", "deny"), ("read_mail", "ask"),
    ],
)  # fmt: skip
def test_names(name: str, verdict: str) -> None:
    policy = ts.Policy(allow=["read_*"], ask=["read_mail"], deny=["rm*", "read_secret"])
    assert policy.decide(call(name)).verdict == verdict


def test_what_no_rule_names_is_asked() -> None:
    decision = ts.Policy().decide("anything")
    assert (decision.verdict, decision.rule, decision.why) == ("ask", "", "no rule allows it")


def test_a_decision_names_its_rule() -> None:
    decision = ts.Policy(allow=["*"], deny=["rm*"]).decide(call("rm"))
    assert decision == ts.Decision("deny", "rm*", "deny rm*")


@pytest.mark.parametrize("path", ["build/x", "build/a/b.txt", "./build/x", "build//x", "build/./x", "build/文件.txt"])
def test_a_path_that_is_inside_is_allowed(path: str) -> None:
    assert ts.Policy(allow=[BUILD]).decide(call("remove", path=path)).verdict == "allow"


OUTSIDE = [
    "build", "build/", "build/.", "build/..", "build/../x", "build/x/../../y", "build/x/..", "/build/x", "../build/x", "xbuild/x",
    "Build/x", "build\\..\\x", "build/..\\x", "build/%2e%2e/x", "build/%2E%2E%2Fx", "build/%252e%252e/x", "build%2fx",
    "build/．．/x", "build／x", "build/\x00../x", "build/x\x00", "build/\u202ex", "build/\u200bx", "bu\u00adild/x", "", " build/x",
    "~/build/x", "file:build/x", "buіld/x", "build/．", "build/ ", "build// ", "build/\u2024", "build/ ./x",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_may_lead_out_is_not_allowed(path: str) -> None:
    assert ts.Policy(allow=[BUILD]).decide(call("remove", path=path)).verdict == "ask"


@pytest.mark.parametrize(
    "arguments",
    [
        {}, {"path": None}, {"path": 5}, {"path": True}, {"path": {"path": "build/x"}}, {"path": []}, {"Path": "build/x"},
        {"path": ["build/x", "/etc"]}, {"path": [["build/x"], ["/etc"]]}, {"path": ["build/x", 1]}, {"args": {"path": "build/x"}},
    ],
)  # fmt: skip
def test_an_argument_that_is_not_what_the_rule_says_is_not_allowed(arguments: dict[str, Any]) -> None:
    assert ts.Policy(allow=[BUILD]).decide(call("remove", **arguments)).verdict == "ask"


def test_every_member_of_a_list_must_be_allowed() -> None:
    assert ts.Policy(allow=[BUILD]).decide(call("remove", path=["build/x", "build/y"])).verdict == "allow"


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("/etc/passwd", "deny"), ("/etc", "deny"), ("/etc/", "deny"), ("//etc//passwd", "deny"), ("/ETC/passwd", "deny"),
        ("/tmp/../etc/passwd", "deny"), ("/tmp/%2e%2e/etc/passwd", "deny"), ("\\etc\\passwd", "deny"), ("/e\u200btc/x", "deny"),
        ("/ｅｔｃ/passwd", "deny"), ("/./etc/x", "deny"), ("/tmp/x", "allow"), ("/etcetera", "allow"),
        ("file:///etc/passwd", "deny"), ("FILE:/etc/passwd", "deny"), (" file://localhost/tmp/../etc/x", "deny"), ("file:///tmp/x", "allow"),
        ("/tmp/../x", "ask"), ("..\\x", "ask"), (["/tmp/x", "/etc/x"], "deny"), (["/tmp/x"], "allow"),
        (5, "ask"), (None, "ask"), ({"a": "/etc/x"}, "ask"), ("/tmp/" + "x" * 20_000, "ask"),
    ],
)  # fmt: skip
def test_what_is_forbidden_is_read_widely(path: Any, verdict: str) -> None:
    assert ts.Policy(allow=["*"], deny=['write(path="/etc/**")']).decide(call("write", path=path)).verdict == verdict


def test_an_absent_argument_may_be_the_forbidden_one() -> None:
    """Unless the schema tells what stands for it."""

    def write(text: str, path: str = "/tmp/x") -> str:
        """Write."""
        return text

    policy = ts.Policy(allow=["*"], deny=['write(path="/etc/**")'])
    assert policy.decide(call("write", text="x")).verdict == "ask"
    assert policy.decide(call("write", text="x"), tools=[ts.tool(write)]).verdict == "allow"


def test_a_rule_for_every_tool_does_not_mean_tools_without_its_argument() -> None:
    def fetch(url: str) -> str:
        """Fetch."""
        return url

    policy = ts.Policy(allow=["*"], deny=['*(path="/etc/**")'])
    assert policy.decide(call("fetch", url="x"), tools=[ts.tool(fetch)]).verdict == "allow"
    assert policy.decide(call("fetch", url="x")).verdict == "ask"  # nobody knows the tool
    path = {"properties": {"path": {"type": "string"}}}
    for more in ({"anyOf": [path]}, {"dependentSchemas": {"url": path}}):
        elsewhere = ts.Tool("fetch", "", {"properties": {}, **more})
        assert policy.decide(call("fetch", url="x"), tools=[elsewhere]).verdict == "ask"


@pytest.mark.parametrize(
    ("rule", "text", "verdict"),
    [
        ("secrets/**", "/data/app/secrets/k", "ask"), ("secrets/**", "$PWD/secrets/k", "ask"), ("secrets/**", "secrets/k", "deny"),
        ("secrets/**", "/data/app/public/k", "allow"), ("~/.ssh/**", "/data/ann/.ssh/id", "ask"), ("~/.ssh/**", "$HOME/.ssh/id", "ask"),
        ("~/.ssh/**", "~/.ssh/id", "deny"), ("/etc/**", "$X/passwd", "ask"), ("/etc/**", "~/../etc/x", "ask"), ("/etc/**", "src/x", "allow"),
        ("/etc/**", " ~x", "ask"),
    ],
)  # fmt: skip
def test_a_path_below_a_root_that_nobody_knows_is_asked_about(rule: str, text: str, verdict: str) -> None:
    policy = ts.Policy(allow=["*"], deny=[f'read(path="{rule}")'])
    assert policy.decide(call("read", path=text)).verdict == verdict


HOST = "internal.example.com"


@pytest.mark.parametrize(
    "url",
    [
        f"http://{HOST}/x", f"https://{HOST}:443/x", f"https://{HOST}./x", f"https://u@{HOST}/", f"https://{HOST}?x", f"//{HOST}/a",
        f"https:{HOST}", f"https:///{HOST}", f"{HOST}/a", f"http://{HOST.upper()}:8443",
    ],
)  # fmt: skip
def test_another_form_of_a_forbidden_address_is_asked_about(url: str) -> None:
    for pattern in (f"https://{HOST}/**", "https://*.example.com/**"):
        policy = ts.Policy(allow=["*"], deny=[f'fetch(url="{pattern}")'])
        assert policy.decide(call("fetch", url=url)).verdict == "ask"
        assert policy.decide(call("fetch", url="https://example.org/internal")).verdict == "allow"


def test_values_that_are_no_texts() -> None:
    policy = ts.Policy(
        allow=["pay(amount=1)", 'pay(test=true, to.country="FI")'], deny=["pay(amount=0)", 'send(to=["a"])']
    )
    asked = {
        "pay(amount=1)": "allow", "pay(amount=1.0)": "allow", "pay(amount=true)": "ask", 'pay(amount="1")': "ask",
        "pay(amount=0.0)": "deny", "pay(amount=2)": "ask", 'send(to=["a"])': "deny",
    }  # fmt: skip
    assert {text: policy.decide(text).verdict for text in asked} == asked
    inner = call("pay", amount=5, test=True, to={"country": "FI"})
    assert policy.decide(inner).verdict == "allow"
    assert policy.decide(call("pay", amount=5, test=1, to={"country": "FI"})).verdict == "ask"


def test_a_dotted_name_is_read_in_every_way() -> None:
    policy = ts.Policy(allow=['f(a.b="x")'])
    assert policy.decide(call("f", a={"b": "x"})).verdict == "allow"
    assert policy.decide(call("f", **{"a.b": "x"})).verdict == "allow"
    assert policy.decide(call("f", **{"a.b": "x"}, a={"b": "y"})).verdict == "ask"
    assert ts.Policy(allow=["*"], deny=['f(a.b="x")']).decide(call("f", **{"a.b": "y"}, a={"b": "x"})).verdict == "deny"


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*.txt", "a.txt", True), ("*.txt", "b/a.txt", False), ("**.txt", "b/a.txt", True), ("*", "a\nb", False), ("**", "a\nb", True),
        ("src/**", "src/a\nb", False), ("src/**", "src/a\tb", False), ("src/*", "src/a\r", False), ("**.txt", "a\nb.txt", True),
        ("src/**/x.py", "src/x.py", True), ("src/**/x.py", "src/a/b/x.py", True), ("src/**/x.py", "srcx.py", False),
        ("a?c", "abc", False), ("a[b]", "ab", False), ("a.c", "abc", False), ("git *", "git status", True),
        ("https://*.example.com/**", "https://a.example.com/x?y=1", True), ("https://*.example.com/**", "https://evil/.example.com/x", False),
        ("https://*.example.com/**", "https://evil?x=.example.com/", False), ("https://*.example.com/**", "https://evil#.example.com/", False),
        ("https://*.example.com/**", "https://me@evil.example.com/", False), ("https://example.com/**", "https://example.com@evil/x", False),
        ("https://example.com/**", "https://example.com.evil/x", False), ("https://example.com/a/**", "https://example.com/a/../b", False),
        ("https://example.com/**", "https://example.com", False), ("https://example.com/**", "https:/example.com/x", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, text: str, fits: bool) -> None:
    assert text_fits(pattern, text) is fits


def test_a_forbidden_text_is_never_an_allowed_one() -> None:
    """What a pattern allows, the same pattern forbids: the wide reading holds the narrow one."""
    patterns = ["build/**", "*.txt", "https://*.example.com/**", "src/**/x.py", "git *", "a"]
    texts = [*OUTSIDE, "build/x", "a.txt", "https://a.example.com/x", "src/x.py", "git x", "a"]
    for pattern in patterns:
        for text in texts:
            assert not text_fits(pattern, text) or text_may_fit(pattern, text), (pattern, text)


PATTERNS = st.text(st.sampled_from("ab/.*:?ßİE"), max_size=8)
TEXTS = st.text(st.sampled_from("ab/.*\\%2eE?#@:\u200bе．ß \nİ"), max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "a.b"]), inner, max_size=3),
    max_leaves=6,
)


@property_test(20_000, PATTERNS, TEXTS)
def test_whatever_a_pattern_allows_it_forbids(pattern: str, text: str) -> None:
    assert not text_fits(pattern, text) or text_may_fit(pattern, text)
    assert not name_fits(pattern, text, wide=False) or name_fits(pattern, text, wide=True)


@property_test(5_000, st.dictionaries(st.sampled_from(["a", "b", "a.b"]), VALUES, max_size=3))
def test_any_arguments_are_decided_on(arguments: dict[str, Any]) -> None:
    """And what the same rule both allows and forbids is forbidden."""
    rules = ['f(a="x/**")', "f(a.b=1)", 'f(a=["x"])', "f(b=null)", 'f(b="y*")']
    assert ts.Policy(allow=rules, deny=rules).decide(call("f", **arguments)).verdict != "allow"


@pytest.mark.parametrize("pattern", ["**a**a**a**b", "*a*a*a*b", "**/**/**/x"])
def test_a_text_is_matched_in_linear_time(pattern: str) -> None:
    assert growth(lambda n: partial(text_fits, pattern, "a" * n), 1000, 2000) <= LINEAR


def test_a_name_that_only_looks_alike_is_not_allowed() -> None:
    policy = ts.Policy(allow=["*"], deny=["remove"])
    assert policy.decide(call("rеmove")).verdict == "ask"  # a Cyrillic е
    assert policy.decide(call("ｒｅｍｏｖｅ")).verdict == "deny"
    assert ts.Policy(allow=["天气"]).decide(call("天气")).verdict == "allow"


def test_a_forbidden_tool_is_known_under_another_name() -> None:
    def remove(path: str) -> str:
        """Remove."""
        return path

    box = ts.Toolbox(remove).prefix("home_").rename(home_remove="read_all")
    policy = ts.Policy(allow=["read_*"], deny=["remove"])
    assert policy.decide(call("read_all", path="x"), tools=tuple(box)).verdict == "deny"


def test_rules_by_effect() -> None:
    def tool(name: str, effect: Any) -> ts.Tool[..., Any]:
        return ts.Tool(name, function=lambda: "", effect=effect)

    tools = [tool("a", "read"), tool("b", "write"), tool("c", "destructive")]
    policy = ts.Policy(allow=["effect:read"], deny=["effect:destructive"])
    assert [policy.decide(call(name), tools=tools).verdict for name in "abcd"] == ["allow", "ask", "deny", "ask"]
    relabelled = ts.Policy(allow=["effect:read"], tools={"b": {"effect": "read"}, "a": {"effect": "write"}})
    assert [relabelled.decide(call(name), tools=tools).verdict for name in "abd"] == ["ask", "allow", "ask"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"allow": "read_*"}, "allow: expected a list of rules"), ({"allow": [5]}, "allow[0]: expected a rule"),
        ({"deny": ["a", ""]}, "deny[1]: expected a rule"), ({"ask": ["f(x=1"]}, "ask[0]"), ({"ask": ["f(x)"]}, 'expected argument="value"'),
        ({"ask": ['f(x="a" y=1)']}, "expected a comma"), ({"ask": ["f(x=a)"]}, "a quoted string or JSON"),
        ({"ask": ["f(x=1, x=2)"]}, "twice"), ({"ask": ["effect:none"]}, "expected effect:read or write or destructive"),
        ({"ask": ["a b"]}, "expected a name"), ({"after_untrusted": "never"}, "after_untrusted: expected ask, deny or allow"),
        ({"tools": {"a": {"effect": "x"}}}, "tools.a.effect: expected read or write"), ({"tools": {"a": {"efect": "read"}}}, "Did you mean"),
        ({"tools": {"a": "read"}}, "tools.a: expected"), ({"tools": []}, "tools: expected a table"),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_told(wrong: dict[str, Any], why: str) -> None:
    with pytest.raises(ts.UsageError) as error:
        ts.Policy(**wrong)
    assert why in str(error.value)


def test_what_a_tool_may_say_of_itself() -> None:
    @ts.tool(effect="read", reads="untrusted")
    def web(url: str) -> str:
        """Read a page."""
        return url

    assert (web.effect, web.reads) == ("read", "untrusted")
    assert (ts.tool(web, name="page").effect, ts.tool(web, parameters={"type": "object"}).reads) == (
        "read",
        "untrusted",
    )
    with pytest.raises(ts.InvalidTool, match="effect: expected read or write or destructive, got 'reads'"):
        ts.tool(lambda: 1, name="f", effect="reads")  # pyright: ignore[reportCallIssue, reportArgumentType]


@pytest.mark.parametrize("path", [" /etc/passwd", "/etc/passwd ", "\n/etc/passwd\n", "\t/etc/passwd"])
def test_white_space_around_a_path_hides_nothing(path: str) -> None:
    policy = ts.Policy(allow=["look"], deny=['look(path="/etc/**")', f'look(path="https://{HOST}/**")'])
    for text in (path, f" https://{HOST}/a"):
        assert policy.decide(ts.ToolCall("", "look", {"path": text})).verdict == "deny"


@pytest.mark.parametrize("name", ["alow", "polciy", "after"])
def test_a_parameter_with_a_slip_is_told(name: str) -> None:
    with pytest.raises(ts.UsageError, match=f"Policy takes no '{name}'\\.( Did you mean| There are)"):
        ts.Policy(**{name: []})


def test_what_means_no_tool_is_told() -> None:
    def remove(path: str) -> str:
        """Remove a file."""
        return path

    rules: Any = {
        "allow": ["effect:read", "remove"],
        "ask": ["rem*"],
        "deny": ["remvoe", 'remove(pth="/etc/**")', "*(path=1)"],
    }
    policy = ts.Policy(**rules, tools={"get_*": {"effect": "read"}, "r*": {"effect": "write"}})
    assert list(policy.unmatched([ts.tool(remove)])) == [
        "deny remvoe: it matches none of the tools. Did you mean 'remove'?",
        "deny remove(pth=\"/etc/**\"): none of the tools that it matches has the argument 'pth'. Did you mean 'path'?",
        "allow effect:read: it matches none of the tools.",
        "tools.get_*: it matches none of the tools.",
    ]
