"""What `blueprints plan` and `blueprints fleet` say: sizes, prices, picture, tables and pages."""
