"""The smallest use: every skill that can be used from the working directory."""

from tacit import Library

library = Library()
for entry in library.active():
    print(f"{entry.name:30} {entry.scope:8} {entry.description[:60]}")
print(f"{len(library)} skills")
