"""Wire formats: bytes to steps and back, one module per format. Knows nothing of HTTP servers."""
