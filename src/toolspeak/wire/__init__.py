"""The language of dialects and its interpreters. Pure: no I/O, clock or randomness.

Terms. A *dialect* (`dialect.py`) is a value that describes how a family of models writes calls, thoughts and prompts. It
is made of *literals*, which are written as they are, and *holes*, which stand for a name or for arguments (`holes/`, a
file each: how it opens, how it is read and written, and its grammar). A *mark* is a literal that the decoder looks for in running
text. A *control marker* is a string that steers a model, and must not reach it from outside text. A call is *whole* if
every byte of it is accounted for. A *note* reports what was repaired, changed or lost.

Four modules are the doors; everything else serves one of them:

    decode.py    chunks of a reply → events          reading/   a generator that pauses where the text ends
    render.py    messages and tools → prompt         prompt/    by the dialect's words or by a chat template
    grammar.py   tools and choice → grammar          grammars/  nodes, then one notation for each engine
    detect.py    template or model name → dialect    finding/   names, templates, declarations, drafts

One reply goes through `reading/` like this: `source` holds the text that arrived, `reply` tells text from thoughts and
calls by the dialect's `lexicon`, `calls` reads sections and the parts of one call, a file of `holes/` reads its arguments
(`json_reader` and `literal_reader` for values), `call_repairs` repairs what departs from the dialect, and `collect` turns the
events into one `Reply`.
"""
