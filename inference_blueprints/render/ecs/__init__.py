"""Amazon ECS: a service and a task definition for each process of the serving plan."""
