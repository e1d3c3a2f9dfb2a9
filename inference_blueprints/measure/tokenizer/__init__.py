"""A tokenizer whose words are one token each, for prompts of an exact length."""
