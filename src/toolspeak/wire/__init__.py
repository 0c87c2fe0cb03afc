"""The dialect language and its interpreters. Pure: no I/O, no clock, no randomness.

Terms:

- A *dialect* (`dialect.py`) is a value that describes how a family of models writes calls, thoughts and prompts.
- It consists of *literals*, which are written verbatim, and *holes*, which are filled with a name, an id or arguments.
  `holes/` has a file for each kind: how it opens, how it is read and written, and its grammar.
- A *mark* is a literal that the decoder searches for in running text.
- A *control marker* is a string that steers a model. In text from outside it must not reach the model intact.
- A call is *whole* if every character of it is accounted for.
- A *note* reports something that was repaired, changed or lost.

Four modules are the entry points; everything else serves one of them:

    decode.py    chunks of a reply → events          reading/   generators that pause at the end of the text so far
    render.py    messages and tools → prompt         prompt/    in the dialect's words, or by a chat template
    grammar.py   tools and choice → grammar          grammars/  nodes, then one notation for each engine
    detect.py    template or model name → dialect    finding/   names, templates, declarations, drafts

A reply goes through `reading/` as follows. `source` buffers the text. `reply` separates text, thoughts and calls by
the words in the dialect's `lexicon`. `calls` reads sections and the parts of one call. A file of `holes/` reads the
arguments (with `json_reader` and `literal_reader` for values), and `call_repairs` repairs departures from the dialect.
The events that result are collected into a `Reply` by `collect`.
"""
