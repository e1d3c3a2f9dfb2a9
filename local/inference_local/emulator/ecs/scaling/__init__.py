"""A stand-in for Application Auto Scaling of ECS services, with the policies that the templates have.

Each rule that it copies names the AWS document that it is from. What is not from a document says so.
"""
