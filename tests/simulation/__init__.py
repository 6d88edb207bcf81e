"""The runner, the job machine and the shard compiler, in worlds that one seed decides.

`python -m tests.simulation --seeds 1000 --from 0 [--only runner|jobs|shards]`, and a seed again
with `--replay SEED --only runner`. How it works: docs/explanation/simulation.md.
"""
