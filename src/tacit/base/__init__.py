"""Settings, paths, events, errors, clock, locks and atomic files: what every layer stands on."""
