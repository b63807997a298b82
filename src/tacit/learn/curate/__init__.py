"""Looking after the library: skills that nobody uses are put away, look-alikes are joined.

`states.py` holds the rules and touches nothing; `looking.py` sees how things stand; `curating.py`
does what the rules say, through the gate; `book.py` remembers.
"""
