"""The serving plan on Amazon ECS: services and task definitions, without the CDK."""
