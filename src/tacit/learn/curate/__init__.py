"""Curation: skills that nobody uses are archived, and look-alikes are joined.

`curation_scope` is what a run works on, `library_survey` how the library stands,
`curation_records` the rules of ageing and what is remembered between runs. `curation` archives by
the rules; `curator` asks a model about look-alikes, whose plans `consolidation` carries out;
`curation_status` says how things stand and when the next run is due.
"""
