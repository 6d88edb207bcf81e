"""Citations: dates in them, their forms, their export, and finding them in texts."""
