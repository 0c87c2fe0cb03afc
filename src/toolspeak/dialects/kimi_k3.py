"""Kimi K3: every element between `<|open|>..<|sep|>` and `<|close|>..<|sep|>`; each argument states its type."""

from ..wire.dialect import INDEX, NAME, Dialect, Speech, Tagged, Thinking, Typed

KIMI_K3 = Dialect(
    "kimi-k3",
    (
        '<|open|>call tool="',
        NAME,
        '" index="',
        INDEX,
        '"<|sep|>',
        Tagged('<|open|>argument key="', '"<|sep|>', "<|close|>argument<|sep|>", typed=Typed('" type="')),
        "<|close|>call<|sep|>",
    ),
    open="<|open|>tools<|sep|>",
    close="<|close|>tools<|sep|>",
    thinking=Thinking("<|open|>think<|sep|>", "<|close|>think<|sep|>", frame_ends=True),
    frame=(
        "<|open|>response<|sep|>",
        "<|close|>response<|sep|>",
        "<|close|>message<|sep|>",
        "<|end_of_msg|>",
    ),
    stop=("<|end_of_msg|>",),
    control=("<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"),
    index_base=1,
    models=("kimi-k3",),
    speech=Speech(text="<|open|>response<|sep|>", text_end="<|close|>response<|sep|>"),
)
