"""Walking a statute: its tree, the plan, the budget, packs, execution."""
