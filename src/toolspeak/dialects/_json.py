"""Parts shared by dialects that write a call as one JSON object."""

from ..wire.dialect import ARGS, ID, NAME, Json, JsonCall

ALSO = (("parameters", ARGS), ("args", ARGS), ("id", ID), ("tool_name", NAME))
JSON = Json()
JSON_CALL = JsonCall(also=ALSO)
PARAMETERS = JsonCall((("name", NAME), ("parameters", ARGS)), (("arguments", ARGS), ("args", ARGS), ("id", ID)))
BARE = ((JSON_CALL,),)
LIST = ("[", ", ", "]")
LINES = ("[\n    ", ",\n    ", "\n]")
