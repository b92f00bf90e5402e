"""The web console: what waits for a person, what happened, and what may happen, in a browser on this machine.

Started by the server inside its own process (`serving.Console`). Starlette, Jinja2 and uvicorn are imported
only below here. Reads the store, changes nothing but through the verbs of the authority.
"""
