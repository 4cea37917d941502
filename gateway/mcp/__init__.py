"""Memory for agents: the library and the governor as tools, over MCP.

`endpoint` answers at `/mcp` of the gateway, `bridge` carries a client's standard input there.
Nothing outside this folder knows the protocol, and only what `endpoint` loads when it is first
asked imports the SDK, which takes a second and 60 MB.
"""
