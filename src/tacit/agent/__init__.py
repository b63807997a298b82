"""The loop, models, tools, activation of skills, and the sandbox that commands run in."""
