"""Tools from elsewhere: MCP servers, OpenAPI documents. What comes from there is checked before a model reads it."""
