"""What the faces of `tacit chat` share: the session behind them, commands, completion, history."""
