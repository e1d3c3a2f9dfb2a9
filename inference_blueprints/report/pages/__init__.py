"""Self-contained HTML pages with a common style and template."""
