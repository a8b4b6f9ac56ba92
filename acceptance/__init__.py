"""Programs that measure what the project promises; one per capability, `make accept-NAME`."""
