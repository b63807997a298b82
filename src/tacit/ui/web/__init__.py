"""A page to look at, `tacit web`: what the command line answers, as HTML."""
