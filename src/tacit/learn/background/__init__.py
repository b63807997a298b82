"""The kit with which every background agent runs: reviews, repairs, consolidations.

`broker` runs an assignment and sends refusals back to the agent; `staging` copies skills into a
folder of the job and turns what came back into changes; `child_process` starts a child that holds
the model's conversation and can write nothing but that folder; `toolset` is what the agent can do
there; `background_gate` gives the gate that its changes pass, in the parent.
"""
