"""A tool loop with OpenAI's SDK, without toolspeak on the client's side.

toolspeak serve &
export OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=none
python examples/gateway/openai_sdk.py
"""

import json

from openai import OpenAI

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def weather(city: str) -> str:
    return f"It is 21 °C and sunny in {city}."


client = OpenAI()
messages = [{"role": "user", "content": "What is the weather in Xiamen?"}]
reply = client.chat.completions.create(model="local", messages=messages, tools=[TOOL]).choices[0].message
messages.append(reply)
for call in reply.tool_calls:
    print(f"the model calls {call.function.name}({call.function.arguments})")
    result = weather(**json.loads(call.function.arguments))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

with client.chat.completions.stream(model="local", messages=messages, tools=[TOOL]) as stream:
    for event in stream:
        if event.type == "content.delta":
            print(event.delta, end="", flush=True)
print()
