"""Seed-OSS: `<seed:tool_call>` around the tags of Qwen 3 Coder; nested values are in Python notation."""

from ..wire.dialect import NAME, RESULT, Dialect, Layout, Results, Speech, Tagged, Thinking

SEED_OSS = Dialect(
    "seed-oss",
    (
        "<seed:tool_call>\n<function=",
        NAME,
        ">\n",
        Tagged("<parameter=", ">", "</parameter>\n"),
        "</function>\n</seed:tool_call>",
    ),
    between="\n",
    before="\n\n",
    thinking=Thinking("<seed:think>", "</seed:think>\n"),
    frame=("<seed:eos>",),
    stop=("<seed:eos>",),
    control=("<seed:bos>", "<seed:eos>", "<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>"),
    models=("seed-oss",),
    speech=Speech(native_results=Results("tool", (RESULT,), grouped=False)),
    layout=Layout(("<seed:bos>", "\n"), "<seed:eos>", strip=False),
)
