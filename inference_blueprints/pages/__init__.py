"""Pages that need nothing else: one style, one way to fill a template."""
