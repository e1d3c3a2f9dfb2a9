"""A stand-in for Amazon ECS: a control plane beside ministack's, and an agent that runs tasks as processes.

Each rule that it copies names the AWS document that it is from. What is not from a document says so.
"""
