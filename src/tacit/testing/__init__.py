"""Public tools for testing with Tacit: a scripted model, its server, a clock, contract suites."""
