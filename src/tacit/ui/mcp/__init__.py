"""The library for any agent, over the Model Context Protocol: `tacit mcp`."""
