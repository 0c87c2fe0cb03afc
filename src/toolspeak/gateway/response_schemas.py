"""JSON Schemas of the gateway's responses, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

from ..types import Schema

COUNT: Schema = {"type": "integer", "minimum": 0}
WORDS: Schema = {"type": ["string", "null"]}


def obj(required: dict[str, Any], **optional: Any) -> Schema:
    """Return the schema of an object with all `required` fields; `optional` ones and others are allowed."""
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def many(item: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": item}


def ref(name: str) -> Schema:
    """Return a reference to a schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


USAGE = obj({"prompt_tokens": COUNT, "completion_tokens": COUNT, "total_tokens": COUNT})
NOTES = obj({"notes": many(obj({"rule": {"type": "string"}, "detail": {"type": "string"}}))})
CALL = obj(
    {
        "id": {"type": "string", "minLength": 1},
        "type": {"enum": ["function"]},
        "function": obj({"name": {"type": "string"}, "arguments": {"type": "string"}}),
    }
)
MESSAGE = obj(
    {"role": {"const": "assistant"}, "content": WORDS},
    refusal=WORDS,
    reasoning_content={"type": "string"},
    tool_calls={**many(CALL), "minItems": 1},
)
FINISH: Schema = {"enum": ["stop", "length", "tool_calls", "content_filter", "function_call"]}
LOGPROBS: Schema = {"type": ["object", "null"]}
MODEL = obj({"id": {"type": "string"}, "object": {"const": "model"}, "created": COUNT, "owned_by": {"type": "string"}})
FILE = obj(
    {
        "id": {"type": "string", "pattern": "^file-"},
        "object": {"const": "file"},
        "bytes": COUNT,
        "created_at": COUNT,
        "expires_at": COUNT,
        "filename": {"type": "string"},
        "purpose": {"enum": ["batch", "batch_output"]},
        "status": {"const": "processed"},
    }
)
STATUSES = ["validating", "in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled"]
BATCH = obj(
    {
        "id": {"type": "string", "pattern": "^batch_"},
        "object": {"const": "batch"},
        "endpoint": {"type": "string"},
        "errors": {"type": ["object", "null"]},
        "input_file_id": {"type": "string"},
        "completion_window": {"type": "string"},
        "status": {"enum": STATUSES},
        "output_file_id": WORDS,
        "error_file_id": WORDS,
        "created_at": COUNT,
        "expires_at": COUNT,
        "request_counts": obj({"total": COUNT, "completed": COUNT, "failed": COUNT}),
    }
)
RESPONSE_ITEMS = many(obj({"id": {"type": "string"}, "type": {"type": "string"}}))
RESPONSE_USAGE = obj({"input_tokens": COUNT, "output_tokens": COUNT, "total_tokens": COUNT})
PAGE = obj(
    {
        "object": {"const": "list"},
        "data": many({"type": "object"}),
        "first_id": {"type": "string"},
        "last_id": {"type": "string"},
        "has_more": {"type": "boolean"},
    }
)

BLOCK: Schema = {
    "oneOf": [
        obj({"type": {"const": "text"}, "text": {"type": "string"}}),
        obj({"type": {"const": "thinking"}, "thinking": {"type": "string"}, "signature": {"type": "string"}}),
        obj({"type": {"const": "tool_use"}, "id": {"type": "string"}, "name": {"type": "string"}, "input": {"type": "object"}}),
    ]
}  # fmt: skip

ANTHROPIC_MODEL = obj(
    {
        "type": {"const": "model"},
        "id": {"type": "string"},
        "display_name": {"type": "string"},
        "created_at": {"type": "string"},
    }
)

OLLAMA_CALL = obj({"function": obj({"name": {"type": "string"}, "arguments": {"type": "object"}})})
OLLAMA_MESSAGE = obj(
    {"role": {"const": "assistant"}, "content": {"type": "string"}},
    thinking={"type": "string"},
    tool_calls={**many(OLLAMA_CALL), "minItems": 1},
)
OLLAMA_HEAD = {"model": {"type": "string"}, "created_at": {"type": "string"}, "done": {"type": "boolean"}}
OLLAMA_END: dict[str, Schema] = {
    "done_reason": {"enum": ["stop", "length", "load"]},
    **dict.fromkeys(("prompt_eval_count", "eval_count", "total_duration", "load_duration"), COUNT),
    **dict.fromkeys(("prompt_eval_duration", "eval_duration"), COUNT),
}

SHAPES: dict[str, Schema] = {
    "Notes": NOTES,
    "Usage": USAGE,
    "OpenAIError": obj(
        {"error": obj({"message": {"type": "string"}, "type": {"type": "string"}, "param": WORDS, "code": WORDS})}
    ),
    "ChatCompletion": obj(
        {
            "id": {"type": "string", "pattern": "^chatcmpl-"},
            "object": {"const": "chat.completion"},
            "created": COUNT,
            "model": {"type": "string"},
            "choices": many(
                obj(
                    {"index": COUNT, "message": MESSAGE, "logprobs": LOGPROBS, "finish_reason": FINISH},
                    toolspeak=ref("Notes"),
                )
            ),
            "usage": ref("Usage"),
        }
    ),
    "Completion": obj(
        {
            "id": {"type": "string", "pattern": "^cmpl-"},
            "object": {"const": "text_completion"},
            "created": COUNT,
            "model": {"type": "string"},
            "choices": many(
                obj(
                    {"index": COUNT, "text": {"type": "string"}, "logprobs": LOGPROBS, "finish_reason": FINISH},
                    toolspeak=ref("Notes"),
                )
            ),
            "usage": ref("Usage"),
        }
    ),
    "Embeddings": obj(
        {
            "object": {"const": "list"},
            "data": many(
                obj(
                    {
                        "object": {"const": "embedding"},
                        "index": COUNT,
                        "embedding": {"anyOf": [many({"type": "number"}), {"type": "string"}]},
                    }
                )
            ),
            "model": {"type": "string"},
            "usage": obj({"prompt_tokens": COUNT, "total_tokens": COUNT}),
        }
    ),
    "Model": MODEL,
    "Models": obj({"object": {"const": "list"}, "data": many(ref("Model"))}),
    "AnthropicError": obj(
        {
            "type": {"const": "error"},
            "error": obj({"type": {"type": "string"}, "message": {"type": "string"}}),
            "request_id": WORDS,
        }
    ),
    "Message": obj(
        {
            "id": {"type": "string", "pattern": "^msg_"},
            "type": {"const": "message"},
            "role": {"const": "assistant"},
            "model": {"type": "string"},
            "content": many(BLOCK),
            "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", "refusal"]},
            "stop_sequence": WORDS,
            "usage": obj({"input_tokens": COUNT, "output_tokens": COUNT}),
        },
        toolspeak=ref("Notes"),
    ),
    "TokenCount": obj({"input_tokens": COUNT}),
    "AnthropicModel": ANTHROPIC_MODEL,
    "AnthropicModels": obj(
        {"data": many(ref("AnthropicModel")), "has_more": {"type": "boolean"}, "first_id": WORDS, "last_id": WORDS}
    ),
    "OllamaError": obj({"error": {"type": "string"}}),
    "OllamaChat": obj({**OLLAMA_HEAD, "message": OLLAMA_MESSAGE}, **OLLAMA_END),
    "OllamaReply": obj({**OLLAMA_HEAD, "response": {"type": "string"}}, thinking={"type": "string"}, **OLLAMA_END),
    "OllamaVectors": obj(
        {"model": {"type": "string"}, "embeddings": many(many({"type": "number"})), "prompt_eval_count": COUNT}
    ),
    "OllamaModels": obj(
        {"models": many(obj({"name": {"type": "string"}, "model": {"type": "string"}, "digest": {"type": "string"}}))}
    ),
    "OllamaRunning": obj(
        {
            "models": many(
                obj(
                    {
                        **{name: {"type": "string"} for name in ("name", "model", "digest", "expires_at")},
                        **{name: {"type": "integer"} for name in ("size", "size_vram", "context_length")},
                    }
                )
            )
        }
    ),
    "OllamaModel": obj({"model_info": {"type": "object"}, "capabilities": many({"type": "string"})}),
    "OllamaVersion": obj({"version": {"type": "string"}}),
    "Response": obj(
        {
            "id": {"type": "string", "pattern": "^resp_"},
            "object": {"const": "response"},
            "created_at": {"type": "number"},
            "status": {"enum": ["completed", "incomplete"]},
            "error": {"type": "null"},
            "incomplete_details": {"type": ["object", "null"]},
            "model": {"type": "string"},
            "output": RESPONSE_ITEMS,
            "usage": RESPONSE_USAGE,
        },
        toolspeak=ref("Notes"),
    ),
    "Compaction": obj(
        {
            "id": {"type": "string", "pattern": "^resp_"},
            "object": {"const": "response.compaction"},
            "created_at": {"type": "number"},
            "output": RESPONSE_ITEMS,
            "usage": RESPONSE_USAGE,
        }
    ),
    "Items": PAGE,
    "File": FILE,
    "Files": PAGE,
    "DeletedFile": obj({"id": {"type": "string"}, "object": {"const": "file"}, "deleted": {"const": True}}),
    "Batch": BATCH,
    "Batches": PAGE,
    "Forgotten": obj({"id": {"type": "string"}, "object": {"const": "response"}, "deleted": {"const": True}}),
    "Text": {"type": "string"},
    "Health": obj({"status": {"enum": ["alive", "ready", "not ready"]}}),
    "Document": obj({"openapi": {"type": "string"}, "info": {"type": "object"}, "paths": {"type": "object"}}),
}
"""Every schema, by its name in the document."""
