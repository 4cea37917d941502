"""How records hang together.

Of the links between records only replacements are stored: who follows, answers or calls whom can be
told from positions, which ranking weighs as neighbours. (Measured on LoCoMo, BEAM and BFCL: a share
of its own for what answers a question, or for records that share a rare name with the best ones,
changed recall by less than a point either way, so there is none.)
"""
