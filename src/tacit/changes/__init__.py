"""The one road into the library: who may change what, how it lands, and how it is undone.

Read in this order: `change` (the nouns), `policy` (who may do what), `gate` (the steps), then
`apply` and `journal` (all or nothing), `history` (git), `undo` and `inbox`.
"""
