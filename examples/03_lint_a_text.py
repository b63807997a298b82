"""Read a SKILL.md that exists only in memory, and say what is wrong with it."""

from tacit import lint_text, parse_skill

TEXT = """---
name: Release Notes
description: Use when: a release is near
---
Write them.
"""

skill = parse_skill(TEXT, "release-notes")
print(f"name={skill.name!r} aliases={skill.aliases} description={skill.description!r}")
for problem in lint_text(TEXT, "release-notes", strict=True):
    print(f"line {problem.line}: {problem.severity}: {problem.message} -> {problem.fix}")
