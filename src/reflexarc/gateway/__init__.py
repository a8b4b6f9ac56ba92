"""The HTTP application: routes, the request pipeline, and System 1 in a process of its own."""
