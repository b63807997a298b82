"""One conversation of Hermes Agent that stays until its review in the background is over.

Runs with the interpreter that has Hermes; its command line ends before the review does. Prints when
the answer was there and when the review had ended, as seconds of the clock since the epoch.
"""

import json
import sys
import threading
import time

from run_agent import AIAgent

url, prompt = sys.argv[1:3]
agent = AIAgent(
    model="mock-model",
    provider="custom",
    base_url=f"{url}/v1",
    api_key="test",
    enabled_toolsets=["terminal", "file", "skills"],
    max_iterations=60,
    quiet_mode=True,
)
agent.run_conversation(prompt)
answered = time.time()
for thread in threading.enumerate():
    if thread.name == "bg-review":
        thread.join(120)
print(json.dumps({"answered": answered, "reviewed": time.time()}))
