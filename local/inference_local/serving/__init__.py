"""A serving plan on this machine: Dynamo's real frontend and router before simulated engines."""
