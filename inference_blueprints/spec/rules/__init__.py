"""What makes a well-typed blueprint sensible: rules by subject, listed in one table."""
