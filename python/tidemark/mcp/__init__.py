"""``tidemark mcp``: recordings and snapshots of one folder, for assistants that speak the Model Context Protocol."""
