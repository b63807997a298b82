"""How each agent is told to call the hook, and how that is taken back."""
