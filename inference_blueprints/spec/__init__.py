"""What a blueprint may say, how it is read, and what is checked before anything else happens."""
