"""The reviewer: an agent of its own that reads a session's digest and keeps what was learned.

`job.run` is what the queue calls. `reviewing.py` holds the conversation in the closed room,
`broker.py` is the parent's side of it, `tools.py` the child's; `landing.py` puts what came of it
through the gate, and `outcome.py` says in words what happened, and nothing else.
"""
