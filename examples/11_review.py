"""A review of one session by a model, in its closed process, through the gate, and back out again.

The model here is the scripted one of `tacit.testing`; leave out `base_url` for a real one.
"""

import os

from tacit import Gate, Store, acting_as, review_session
from tacit.testing import ModelServer, ToolUse, Turns, made, ran

SKILL = """---
name: package-builds
description: How packages are built here. Use before building one.
---

# Package builds

1. Read the version from the VERSION file, never invent one.
2. Run `make check`, then `make package`.
"""
ASKED = (
    "Build the package. Read the version from the VERSION file, never invent one: run"
    " `make check`, then `make package`."
)
reviewer = Turns(
    [ToolUse("write_file", {"path": "package-builds/SKILL.md", "content": SKILL}), "Kept it."]
)
with ModelServer(reviewer) as server, Store.open() as store:
    os.environ |= {"TACIT_AGENT_MODEL": "openai:mock", "TACIT_AGENT_BASE_URL": f"{server.url}/v1"}
    os.environ |= {"TACIT_LEARN_APPROVAL": "auto", "TACIT_MEMORY_USE": "false"}
    trace = made([ASKED, ran("make check", "ok"), ran("make package", "built")])
    store.write(trace)
    done = review_session(trace.id)
    print(f"{done.outcome}: {done.reason}")
    with acting_as("user"):
        for change in done.changes:
            print(Gate().undo(change).explain())
