"""``tidemark mcp``: recordings and snapshots of one folder, for assistants that use the Model Context Protocol."""
