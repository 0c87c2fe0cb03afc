"""Inkling: each call is a message of its own, recognized by its kind; the tool's name also precedes the kind."""

from ..wire.dialect import ARGS, NAME, Dialect, JsonCall, Thinking

OBJECT = JsonCall((("name", NAME), ("args", ARGS)), (("arguments", ARGS), ("parameters", ARGS)))

INKLING = Dialect(
    "inkling",
    ("<|message_model|>", NAME, "<|content_invoke_tool_json|>", OBJECT, "<|end_message|>"),
    forms=(
        ("<|message_model|>", "<|content_invoke_tool_json|>", OBJECT, "<|end_message|>"),
        ("<|content_invoke_tool_json|>", OBJECT, "<|end_message|>"),
    ),
    thinking=Thinking("<|content_thinking|>", "<|end_message|>"),
    frame=(
        "<|message_model|>",
        "<|message_model|><|content_text|>",
        "<|content_text|>",
        "<|end_message|>",
        "<|content_model_end_sampling|>",
    ),
    stop=("<|content_model_end_sampling|>",),
    control=(
        "<|message_user|>",
        "<|message_system|>",
        "<|message_tool|>",
        "<|content_xml|>",
        "<|content_image|>",
        "<|content_audio_input|>",
        "<|audio_end|>",
        "<|content_tool_error|>",
        "<|content_invoke_tool_text|>",
        "<|endoftext|>",
    ),
    models=("inkling",),
)
