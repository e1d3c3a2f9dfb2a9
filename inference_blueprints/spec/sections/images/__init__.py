"""Images in prompts and answers."""
