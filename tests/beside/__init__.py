"""Tests of what runs in the process of an agent, without a gateway."""
