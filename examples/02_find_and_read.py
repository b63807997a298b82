"""Find the skill for a task, and read it."""

import sys

from tacit import Library

task = " ".join(sys.argv[1:]) or "find out what is wrong with a skill"
library = Library()
for hit in library.search(task, limit=3):
    print(f"{hit.score:8.2f}  {hit.entry.name}  (line {hit.line}: {hit.text})")

best = library.search(task, limit=1)
if best:
    skill = library.read(best[0].entry.name)
    print(f"\n{skill.name}: {len(skill.body):,} characters from {skill.folder}")
