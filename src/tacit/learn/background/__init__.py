"""The closed room in which every background agent runs: reviews, repairs, curation.

`room.run` starts a child process that holds the model's conversation and can write nothing but a
staging folder; the parent keeps the gate, runs commands, and ends the child when its time is up.
"""
