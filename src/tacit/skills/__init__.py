"""Skills as they lie on disk: reading them, the library over all scopes, its index and search."""
