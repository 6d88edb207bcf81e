"""Finding out how a website lists its PDFs: strategies, who proposes them, and how they do."""
