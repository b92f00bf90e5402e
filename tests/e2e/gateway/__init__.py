"""Real MCP servers, clients and conformance suites around the gateway."""
