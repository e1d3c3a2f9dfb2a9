"""Plans a blueprint: figures, tables, notes and the plan page."""
