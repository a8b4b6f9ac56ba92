"""The fuzzer of the dialects: `make fuzz`. Mutates the inputs of the golden matrix."""
