"""System 1 in an agent's own process, beside the framework it is written in, without a gateway.

Each framework's module imports that framework; nothing else here does.
"""
