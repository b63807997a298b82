"""The one road into the library: a proposed change, the checks it passes, and its history."""
