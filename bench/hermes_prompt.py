"""Builds the skills block of Hermes Agent's prompt; runs with the interpreter that has it.

Prints the seconds that the call took, with imports done, and the characters of the block.
"""

import json
import time

from agent.prompt_builder import build_skills_system_prompt

cpu, began = time.process_time(), time.perf_counter()
block = build_skills_system_prompt()
took, spent = time.perf_counter() - began, time.process_time() - cpu
print(json.dumps({"seconds": took, "cpu": spent, "characters": len(block)}))
