"""From passages to vectors."""
