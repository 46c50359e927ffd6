"""Attacks on released traces: what an adversary would do, and how near it comes.

One function an attack, all of one contract (`contract`); `suite` tries them on a designed release,
`telling` finds how well two hypotheses can be told apart.
"""
