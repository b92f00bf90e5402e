"""The gateway door: one MCP server in front of many, every tool call judged on its way."""
