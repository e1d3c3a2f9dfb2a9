"""The tables and notes that `blueprints plan` shows in the terminal and on its page."""
