"""What the faces of `tacit chat` share: the session, slash commands, completion, texts."""
