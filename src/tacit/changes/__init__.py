"""The one road into the library: who may change what, how it lands, and how it is undone.

Read in this order: `change` (the nouns), `policy` (who may do what), `gate` and `gate_steps` (what
every change passes), `effect` (what a change would do), then `skill_state` and `journal` (all or
nothing), `history` (git), `undo` and `inbox`. `facts` brings facts down the same road, and `scan`
reads what is about to be written.
"""
