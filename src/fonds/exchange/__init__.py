"""What leaves a library and comes back: bundles, tables for other programs, whole databases."""
