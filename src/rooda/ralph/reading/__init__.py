"""What the files say that ralph lives by: its config, its plan, AGENTS.md, its prompts. Pure."""
