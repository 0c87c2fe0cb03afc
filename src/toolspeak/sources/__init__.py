"""Tools from elsewhere: MCP servers, OpenAPI documents, Python files. Foreign definitions are checked before a model
reads them."""
