"""PLaMo 3: requests with a name and arguments, each part between markers."""

from ..wire.dialect import NAME, Dialect, Maybe, Thinking
from ._json import JSON

PLAMO3 = Dialect(
    "plamo3",
    (
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
        NAME,
        "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|>",
        Maybe(("<|plamo:constrain|>json",), written=True),
        "<|plamo:msg|>",
        JSON,
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
    ),
    open="<|plamo:begin_tool_requests:plamo|>",
    close="<|plamo:end_tool_requests:plamo|>",
    thinking=Thinking("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", frame_ends=True),
    frame=("<|plamo:tag|>",),
    stop=("<|plamo:tag|>",),
    control=("<|plamo:begin_", "<|plamo:end_", "<|plamo:constrain|>", "<|plamo:msg|>"),
    models=("plamo-3",),
)
