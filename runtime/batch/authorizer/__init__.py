"""Who holds a token: a function that API Gateway asks before it lets a request through."""
