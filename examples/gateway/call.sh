#!/bin/sh
# A tool call through the gateway, with nothing but curl.
#
# toolspeak serve &
# sh examples/gateway/call.sh
curl --silent --show-error --fail-with-body "${OPENAI_BASE_URL:-http://127.0.0.1:8080/v1}/chat/completions" \
  --header "Content-Type: application/json" --header "Authorization: Bearer ${OPENAI_API_KEY:-none}" --data '{
    "model": "local",
    "messages": [{"role": "user", "content": "What is the weather in Xiamen?"}],
    "tools": [{"type": "function", "function": {
      "name": "weather",
      "description": "The weather in a city",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    }}]
  }'
