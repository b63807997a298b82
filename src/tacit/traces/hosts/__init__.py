"""What agents did in their sessions, in one form, whatever the host."""
