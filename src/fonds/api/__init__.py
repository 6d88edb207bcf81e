"""The HTTP face: uploads, jobs, documents; errors as problem+json."""
