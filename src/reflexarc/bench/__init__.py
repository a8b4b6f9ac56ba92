"""Workloads, baselines and measurements: the demo's returns desk, arms, metrics, reports."""
