"""Builds the skills block of Hermes Agent's prompt; runs with the interpreter that has it.

Prints the seconds that the call took, with imports done, and the characters of the block.
"""

import json
import time

from agent.prompt_builder import build_skills_system_prompt

began = time.perf_counter()
block = build_skills_system_prompt()
took = time.perf_counter() - began
print(json.dumps({"seconds": took, "characters": len(block)}))
