"""stub"""
from dataclasses import dataclass
@dataclass
class Rendered:
    prompt: str
    messages: list
    stop: tuple = ()
    notes: tuple = ()
def render(messages, tools, d, **kw):
    return Rendered("", list(messages))
