"""Tests: unit mirrors the package, contract runs on every implementation, system is real."""
