"""A platform in an account: deploying it, looking before it is deployed, and taking it away again."""
