"""The reviewer: an agent that reads a session's digest and keeps what was learned.

`review_triggers` says which sessions are reviewed, `review_job` reviews one, `review_batch`
several that a person asked for. `review_broker` is the parent's side of the conversation,
`review_tools` the child's, and `learned_skill` is what a learned skill is called and says of its
origin.
"""
