"""Runs: state, tasks, locks, loading, scheduling, audit."""
