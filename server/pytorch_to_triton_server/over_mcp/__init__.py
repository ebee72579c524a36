"""The catalogue as MCP offers it: tools, prompts, resources, and what their answers look like."""
