"""The HTTP API of chat: for programs with a token below `/api/v1`, for our own pages below their place.

`endpoints` is the one table of what there is; `calling` answers, `following` streams, `openapi` describes it.
Everything is asked of the authority, as the terminal asks it.
"""
