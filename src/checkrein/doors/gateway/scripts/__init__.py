"""Scripts behind the gateway: tools of its own that run what a model wrote, call by call, under policy."""
