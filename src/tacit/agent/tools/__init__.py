"""The tools that a model can call: one module a family, a struct and a function each."""
